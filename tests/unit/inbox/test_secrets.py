"""Secrets that a reply must not give away."""

import time

import pytest

from waybook.inbox.secrets import holds_secret


@pytest.mark.parametrize(
    "text",
    [
        "Ihr Passwort lautet Sommer24!",
        "La contraseña es: hola1234",
        "пароль: qwerty12",
        "Die PIN lautet 4821",
        "Dein Code: 482-913",
        "https://x.example/password-reset/4f9a8b7c6d5e4f3a2b1c",
        "use ghp_abcdefghijklmnop1234",
        "-----BEGIN RSA PRIVATE KEY-----",
    ],
)
def test_passwords_codes_links_and_keys_are_noticed(text: str) -> None:
    """In the languages that are answered, however the link carries its key."""
    assert holds_secret(f"Hello,\n{text}\nRegards")


@pytest.mark.parametrize(
    "text",
    [
        "Please reset your password at https://ours.example/reset",
        "The promo code SUMMER gives 10 %",
        "https://ours.example/verify/how-it-works",
        "Our postal code is 10115 Berlin",
    ],
)
def test_what_only_speaks_of_them_may_leave(text: str) -> None:
    assert not holds_secret(text)


def test_a_long_text_takes_no_time() -> None:
    """Links upon links are looked through in a moment."""
    began = time.perf_counter()
    for text in ("http://" * 2_800, "http://" + "reset" * 4_000, "password is " * 1_600, "code" + " " * 20_000):
        holds_secret(text)
    assert time.perf_counter() - began < 2
