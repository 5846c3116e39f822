"""Plumbline's additions to `argilla_embedded`, the Argilla server that runs in an environment of its own.

    install    the function that the server calls at its start
    crowd      pages where crowd participants enter and get their completion code; crowd_pages, crowd_html, crowd_book
    rate       the rating page as text (rate.html, rate.js, rate.css)
    work_page  an annotator's own page over all datasets (work.html, work.js)
    links      links that sign one annotator in, in one browser; sessions ends what a browser opened
    answers    refuses numbers outside a slider's ends, and endless texts
    entries    each annotator's own order of an item's candidates, which owners can read

It imports argilla_embedded and argilla_server, never the platform.
"""
