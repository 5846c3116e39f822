"""What runs inside the Argilla server's own environment: the real server on one SQL database.

    launch     takes the home's lock and the port, sets Argilla's settings, runs uvicorn; imports: what Argilla finds
    workers    in several processes, which are begun again when killed
    database   migration, accounts, repair at the start; connections: pools, and locks for what must not be read stale
    holding    PostgreSQL for this server alone, again when it was away
    recount    whether a record has enough answers, in two statements
    trips      one trip to a connection's thread for each statement to SQLite
    guard      how much is read from whom and for how long, safe headers; hosts, protocol: names, slow connections
    signing_in passwords, ever more slowly where they are wrong; throttle: how slowly; recent: what is remembered for it
    gate       one writing request at a time, answers on PostgreSQL together; turns: the order, over all processes
    jobs       Argilla's background jobs in this process, in place of Redis
    journal    which jobs there are, kept over a crash
    engine     Argilla's SearchEngine on its own SQL tables; reading, predicates, ordering: filters and sorts;
               text, query, index, evaluation: words and text queries; handing: who holds what, so that nobody answers
               what others see to
    crowd      where crowd participants enter and get their completion code; crowd_pages, crowd_html, crowd_book
    rate       the rating page as text (rate.html, rate.js, rate.css)
    work_page  an annotator's own page over all datasets (work.html, work.js)
    entries    each annotator's own order of an item's candidates; owners learn which
    privacy    an annotator reads own answers and nobody else's
    hardening  the pages, the log, the passwords and the API's errors made safe

It imports argilla_server, never the platform, and is started by the platform as `python -m plumbline_argilla`.
"""
