"""The real Argilla server on one SQL database: without Docker, Elasticsearch or Redis.

launch     takes the home's lock and the port, sets Argilla's settings, runs uvicorn; home: secret and owner;
           imports: replacements for modules that Argilla imports
setup      a server's additions to Argilla: switches and plugins
workers    several processes, restarted when killed
database   migration, accounts, repair at the start; connections: pools, and locks against stale reads
holding    the lock of a PostgreSQL database, taken again after PostgreSQL was away
recount    the status of a record after each answer, in two statements
trips      fewer trips to the threads of the connections to SQLite
guard      limits on requests, security headers; hosts, protocol: host names, slow connections
signing_in checks of passwords; throttle: their waits after wrong ones; recent: the memory for these
gate       one writing request at a time, few that read; turns: the order, over all processes
jobs       Argilla's background jobs in this process, in place of Redis
journal    the jobs, in a file that survives a crash
engine     Argilla's SearchEngine on its own SQL tables; reading, predicates, ordering: filters and sorts;
           arrivals: each user's own order;
           text, query, index, evaluation: words and text queries
handing    on request: the records that raters hold, so that no record gets more answers than it needs
privacy    on request: annotators read only their own answers
hardening  corrections of faults; on request, protection of pages, passwords and the API
"""
