"""The commands of a campaign: what each does and prints."""
