"""Import of ratings that people gave elsewhere: from files of any form to a study with texts, rubric and ratings."""
