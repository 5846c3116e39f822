"""The real Argilla server on one SQL database: without Docker, Elasticsearch and Redis.

launch     takes the home's lock and the port, sets Argilla's settings, runs uvicorn; home: secret and owner;
           imports: what Argilla finds
setup      what is asked of a server beside Argilla itself: switches and plugins
workers    in several processes, which are begun again when killed
database   migration, accounts, repair at the start; connections: pools, and locks for what must not be read stale
holding    PostgreSQL for this server alone, again when it was away
recount    whether a record has enough answers, in two statements
trips      one trip to a connection's thread for each statement to SQLite
guard      how much is read from whom and for how long, safe headers; hosts, protocol: names, slow connections
signing_in passwords, where asked ever more slowly; throttle: how slowly; recent: what is remembered for it
gate       one writing request at a time, answers on PostgreSQL together; turns: the order, over all processes
jobs       Argilla's background jobs in this process, in place of Redis
journal    which jobs there are, kept over a crash
engine     Argilla's SearchEngine on its own SQL tables; reading, predicates, ordering: filters and sorts;
           text, query, index, evaluation: words and text queries
handing    where asked: who holds what, so that nobody answers what others see to
privacy    where asked: an annotator reads own answers and nobody else's
hardening  errors mended; where asked, the pages, the passwords and the API made safe
"""
