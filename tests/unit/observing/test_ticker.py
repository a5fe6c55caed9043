import threading

from sparkdiag.observing.ticker import Ticker


def test_rounds_go_on_after_an_error_and_can_be_asked_for() -> None:
    errors: list[Exception] = []
    rounds: list[bool] = []
    ran = threading.Event()

    def action(asked: bool) -> None:
        rounds.append(asked)
        ran.set()
        if len(rounds) == 1:
            raise ValueError("once")

    ticker = Ticker("test", action, period_s=lambda: 3600.0, on_error=errors.append)
    ticker.start()
    assert ran.wait(10)
    assert ticker.wait_for(ticker.ask(), timeout_s=10)
    assert rounds == [False, True]
    assert [str(error) for error in errors] == ["once"]
    ran.clear()
    ticker.wake()
    assert ran.wait(10)
    assert rounds == [False, True, False]
    ticker.stop()
    assert ticker.join(10)


def test_a_round_that_began_before_it_was_asked_for_does_not_count() -> None:
    entered, leave = threading.Semaphore(0), threading.Semaphore(0)

    def action(_asked: bool) -> None:
        entered.release()
        assert leave.acquire(timeout=10)

    ticker = Ticker("test", action, period_s=lambda: 3600.0, on_error=lambda _error: None)
    ticker.start()
    assert entered.acquire(timeout=10)
    ticket = ticker.ask()
    leave.release()
    assert entered.acquire(timeout=10), "a second round begins for the one that was asked for"
    assert not ticker.wait_for(ticket, timeout_s=0.05)
    leave.release()
    assert ticker.wait_for(ticket, timeout_s=10)
    ticker.stop()
    assert ticker.join(10)


def test_stopping_wakes_whoever_waits() -> None:
    leave = threading.Event()
    ticker = Ticker("test", lambda _asked: leave.wait(10) and None, period_s=lambda: 1.0, on_error=lambda _error: None)
    ticker.start()
    ticket = ticker.ask()
    ticker.stop()
    assert not ticker.wait_for(ticket, timeout_s=10)
    assert not ticker.join(0)
    leave.set()
    assert ticker.join(10)


def test_a_ticker_that_was_never_started_can_be_joined() -> None:
    ticker = Ticker("test", lambda _asked: None, period_s=lambda: 1.0, on_error=lambda _error: None)
    ticker.stop()
    assert ticker.join(0)
