"""What the collectors write and the run-folder reader reads; standard library only."""
