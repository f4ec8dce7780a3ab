"""The house: set up, looked over, copied, brought up to date."""
