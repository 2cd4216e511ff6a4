"""Keys and passwords never reach a saved config; everything else does."""

import io

import pytest
from jsonargparse import Namespace

from smmd_lightning.masking import MaskedStream, masked


def test_secrets_are_masked_wherever_they_stand_and_nothing_else_is():
    settings = Namespace(
        trainer=Namespace(
            logger=[
                Namespace(class_path="WandbLogger", init_args=Namespace(project="clocks", api_key="abc")),
                Namespace(
                    class_path="MLFlowLogger", init_args={"tracking_uri": "https://me:pw@host:1/x", "token": "t"}
                ),
            ]
        ),
        data={"template_options": {"pad_token": "<pad>", "hf_token": "hf_1"}, "keys": ["a"], "author": "me"},
        password="p",
        numbers={"max_new_tokens": 3, "secret_key": 12, "auth_token": None, "access_token": ""},
    )
    found = masked(settings)
    loggers = found.trainer.logger
    assert (loggers[0].init_args.project, loggers[0].init_args.api_key) == ("clocks", "***")
    assert loggers[1].init_args == {"tracking_uri": "https://me:***@host:1/x", "token": "***"}
    assert found.data == {
        "template_options": {"pad_token": "<pad>", "hf_token": "***"},
        "keys": ["a"],
        "author": "me",
    }
    assert found.password == "***"
    assert found.numbers == {"max_new_tokens": 3, "secret_key": "***", "auth_token": None, "access_token": ""}
    assert settings.password == "p"  # what runs still has it
    assert settings.trainer.logger[0].init_args.api_key == "abc"


def test_tuples_and_plain_values_stay():
    assert masked({"betas": (0.9, 0.95), "x": None, "url": "http://host/a:b@c"}) == {
        "betas": (0.9, 0.95),
        "x": None,
        "url": "http://host/a:b@c",
    }


def test_what_stands_below_a_secret_name_and_in_the_query_of_a_url_is_masked_too():
    settings = {
        "credentials": {"user": "me", "code": {"a": 7}, "on": True, "none": None},
        "api_keys": ["a", "b"],
        "hook": "https://host/x?id=3&access_token=abc#top",
        "upload": "https://host/?X-Amz-Signature=abc&part=2",
        "page": "https://host/x?monkey=1&tokens=2",
    }
    assert masked(settings) == {
        "credentials": {"user": "***", "code": {"a": "***"}, "on": True, "none": None},
        "api_keys": ["***", "***"],
        "hook": "https://host/x?id=3&access_token=***#top",
        "upload": "https://host/?X-Amz-Signature=***&part=2",
        "page": "https://host/x?monkey=1&tokens=2",
    }


@pytest.mark.parametrize(
    "name",
    [
        "api-key", "github_token", "tracking_token", "sas_token", "GITHUB_TOKEN", "x-auth-token", "account_key",
        "slack_webhook", "webhook_url", "connection_string", "hf_tokens", "client_secret", "Authorization",
    ],
)  # fmt: skip
def test_names_of_secrets_in_any_spelling(name):
    assert masked({name: "s3cret"}) == {name: "***"}


@pytest.mark.parametrize(
    "name",
    [
        "eos_token",
        "image_token",
        "stop_tokens",
        "max_tokens",
        "num_image_tokens",
        "loss_tokens",
        "tokens",
        "keys",
        "keyboard",
        "monkey",
    ],
)
def test_words_and_numbers_of_a_tokenizer_stay(name):
    assert masked({name: "plain"}) == {name: "plain"}


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://ghp_0123456789abcdef@host/x", "https://***@host/x"),
        ("https://host/x?sv=1&sig=abc%3D&se=2", "https://host/x?sv=1&sig=***&se=2"),
        ("https://hooks.slack.com/services/T0/B0/abcdef", "https://hooks.slack.com/services/T0/B0/***"),
        ("https://discord.com/api/webhooks/12/abc-def", "https://discord.com/api/webhooks/12/***"),
        ("ssh://git@host/x", "ssh://git@host/x"),
    ],
)
def test_secrets_inside_urls(url, shown):
    assert masked({"uri": url}) == {"uri": shown}


def test_text_that_quotes_settings_does_not_tell_their_secrets():
    out = io.StringIO()
    settings = {
        "logger": [{"api_key": "it's\\secret", "url": "https://me:pw123@host/x"}],
        "password": "abc",
        "name": "it",
    }
    stream = MaskedStream(out, settings)
    stream.write(f"bad {settings['logger']!r} it's\\secret abc, it is\n")
    stream.flush()
    assert out.getvalue() == "bad [{'api_key': \"***\", 'url': 'https://me:***@host/x'}] *** abc, it is\n"
