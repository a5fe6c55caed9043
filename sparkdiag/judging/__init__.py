"""What a run is found to be: pure functions over the evidence values, from one sample up to the verdict.

signature (one sample) -> progress (calls as work) -> forecast, fit (time to first token) -> pace, stuck, crawling ->
judge. ``simulation`` is a model of a prefill that tests and scripts/calibrate_forecast.py measure the judge on.
"""
