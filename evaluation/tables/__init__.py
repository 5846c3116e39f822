"""Tables that commands print, reports contain and the dashboard shows, from frames of records.

Each is a function of the frame of scores (`plumbline.records.Score` rows). Scores and their standard deviations stay in
their own units (0 to 1) in every frame; differences and shifts are in points (hundredths). Seeds are averaged first,
because they are repeated runs (HTEB, 2.3). Undefined values are NaN with a reason. Only accepted transformations
count, except that `axis_table` and `transformation_table` may take in rejected ones that the user included, and name
them. Frames have `simulated` where a rating behind them is simulated.
"""
