"""From a study's records to the frames that pages show."""
