"""Ratings that people gave elsewhere: files of any form in, a study with its texts, rubric and ratings out."""
