import threading

from sparkdiag.observing.ticker import Ticker


def test_rounds_go_on_after_an_error_and_can_be_woken() -> None:
    errors: list[Exception] = []
    rounds = threading.Semaphore(0)
    counted: list[int] = []

    def action() -> None:
        counted.append(len(counted))
        rounds.release()
        if len(counted) == 1:
            raise ValueError("once")

    ticker = Ticker("test", action, period_s=lambda: 3600.0, on_error=errors.append)
    ticker.start()
    assert rounds.acquire(timeout=10)
    assert rounds.acquire(timeout=10), "a broken round is followed by another soon"
    assert [str(error) for error in errors] == ["once"]
    ticker.wake()
    assert rounds.acquire(timeout=10)
    assert counted == [0, 1, 2]
    ticker.stop()
    assert ticker.join(10)


def test_a_wake_during_a_round_begins_another() -> None:
    entered, leave = threading.Semaphore(0), threading.Semaphore(0)

    def action() -> None:
        entered.release()
        assert leave.acquire(timeout=10)

    ticker = Ticker("test", action, period_s=lambda: 3600.0, on_error=lambda _error: None)
    ticker.start()
    assert entered.acquire(timeout=10)
    ticker.wake()
    leave.release()
    assert entered.acquire(timeout=10)
    ticker.stop()
    leave.release()
    assert ticker.join(10)
    assert not entered.acquire(timeout=0)


def test_stopping_does_not_wait_for_the_round_that_runs() -> None:
    entered, leave = threading.Event(), threading.Event()

    def action() -> None:
        entered.set()
        leave.wait(10)

    ticker = Ticker("test", action, period_s=lambda: 1.0, on_error=lambda _error: None)
    ticker.start()
    assert entered.wait(10)
    ticker.stop()
    assert not ticker.join(0)
    leave.set()
    assert ticker.join(10)


def test_a_ticker_that_was_never_started_can_be_joined() -> None:
    ticker = Ticker("test", lambda: None, period_s=lambda: 1.0, on_error=lambda _error: None)
    ticker.stop()
    assert ticker.join(0)
