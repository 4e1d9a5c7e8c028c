from pathlib import Path

import pytest
import yaml

from env.errors import InputError, NavigatorError, SettingError
from train.config import Config, digest, keys, load_config

CONFIGS = sorted((Path(__file__).parents[2] / "configs").glob("*.yaml"))


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.name)
def test_a_shipped_config_loads_is_sparse_and_says_its_purpose(path):
    load_config(path)
    assert path.read_text().startswith("# ")
    defaults, given = Config().to_dict(), yaml.safe_load(path.read_text())
    repeated = [
        f"{name}.{key}"
        for name, section in given.items()
        if isinstance(section, dict)
        for key, value in section.items()
        if defaults[name][key] == value
    ]
    assert repeated == []


def test_the_named_configs_are_shipped():
    assert {"laptop.yaml", "qwen2.5-7b.yaml", "tiny.yaml"} <= {path.name for path in CONFIGS}


def test_a_file_lies_over_the_defaults_and_set_over_the_file(tmp_path):
    path = tmp_path / "c.yaml"
    path.write_text("seed: 3\nengine:\n  max_loras: 5\n  in_flight: 7\n")
    config = load_config(path, ["engine.in_flight=9", "evaluate.temperature=1"])
    assert (config.seed, config.engine.max_loras, config.engine.in_flight) == (3, 5, 9)
    assert config.engine.max_num_seqs == Config().engine.max_num_seqs
    assert config.evaluate.temperature == 1.0
    assert isinstance(config.evaluate.temperature, float)


def test_an_exponent_without_a_point_is_a_number():
    assert load_config(None, ["engine.kv_cache_gib=2e-1"]).engine.kv_cache_gib == 0.2


def test_an_empty_file_and_an_empty_section_are_the_defaults(tmp_path):
    path = tmp_path / "c.yaml"
    path.write_text("# nothing\n")
    assert load_config(path) == Config()
    path.write_text("engine:\n  # max_loras: 5\n")
    assert load_config(path) == Config()


@pytest.mark.parametrize(
    ("override", "nearest"),
    [
        ("grpo.learning_rat=1", "grpo.learning_rate"),
        ("engin.max_lora=4", "engine.max_loras"),
        ("seeed=1", "seed"),
        ("max_model_len=5", "engine.max_model_len"),
        ("grpo.max_model_len=5", "engine.max_model_len"),
    ],
)
def test_an_unknown_key_is_refused_with_the_nearest_valid_name(override, nearest):
    with pytest.raises(SettingError) as caught:
        load_config(None, [override])
    assert str(caught.value) == f"--set {override}: {override.partition('=')[0]} is no setting; the nearest one is {nearest}"


def test_an_unknown_key_of_a_file_names_the_file(tmp_path):
    path = tmp_path / "c.yaml"
    path.write_text("engine:\n  max_lora: 5\n")
    with pytest.raises(SettingError) as caught:
        load_config(path)
    assert str(caught.value) == f"{path}: engine.max_lora is no setting; the nearest one is engine.max_loras"


@pytest.mark.parametrize(
    ("override", "reason"),
    [
        ("seed=1.5", "seed is 1.5, expected a whole number"),
        ("seed=true", "seed is True, expected a whole number"),
        ("evaluate.temperature=hot", "evaluate.temperature is 'hot', expected a number"),
        ("data.train=many", "data.train is 'many', expected a whole number or null"),
        ("engine.kind=sglang", "engine.kind is 'sglang', expected one of vllm, transformers"),
        ("grpo.advantage=gae", "grpo.advantage is 'gae', expected one of episode, episode_no_std, rloo"),
        ("grpo.schedule=step", "grpo.schedule is 'step', expected one of constant_with_warmup, linear, cosine"),
        ("engine.enforce_eager=1", "engine.enforce_eager is 1, expected true or false"),
        ("model.path=5", "model.path is 5, expected text"),
        ("seed=", "seed is None, expected a whole number"),
    ],
)
def test_an_ill_typed_value_is_refused_with_key_value_and_expected_type(override, reason):
    with pytest.raises(SettingError) as caught:
        load_config(None, [override])
    assert str(caught.value) == f"--set {override}: {reason}"


def test_a_section_is_no_value():
    with pytest.raises(SettingError, match=r"engine is a section, not the value 5; set one of engine\.kind, "):
        load_config(None, ["engine=5"])


def test_an_override_without_a_value_is_refused():
    with pytest.raises(SettingError) as caught:
        load_config(None, ["seed"])
    assert str(caught.value) == "--set seed has no value: write --set seed=VALUE"


def test_an_unknown_profile_is_refused():
    with pytest.raises(SettingError, match="'v3' is unknown"):
        load_config(None, ["profile=v3"])


@pytest.mark.parametrize(
    ("text", "error"),
    [("seed: [1\n", SettingError), ("- seed\n", SettingError), (None, InputError), ("seed: 1\n\xff", SettingError)],
)
def test_a_file_that_is_no_configuration_is_one_clear_error(tmp_path, text, error):
    path = tmp_path / "c.yaml"
    if text is not None:
        path.write_text(text)
    with pytest.raises(error) as caught:
        load_config(path)
    assert isinstance(caught.value, NavigatorError)
    assert str(caught.value).startswith(str(path))


def test_to_dict_goes_back_through_yaml(tmp_path):
    config = load_config(None, ["seed=7", "teacher.style=assert", "engine.kv_cache_gib=3.5"])
    path = tmp_path / "c.yaml"
    path.write_text(yaml.safe_dump(config.to_dict()))
    assert load_config(path) == config


def test_every_key_can_be_set_to_its_default():
    defaults = Config().to_dict()
    for key in keys():
        value = defaults
        for name in key.split("."):
            value = value[name]
        text = yaml.safe_dump(value, default_flow_style=True).removesuffix("\n...\n").strip()
        assert load_config(None, [f"{key}={text}"]) == Config(), key


def test_the_digest_follows_the_content_and_not_the_order():
    assert digest({"a": 1, "b": (2, 3)}) == digest({"b": [2, 3], "a": 1})
    assert digest({"a": 1}) != digest({"a": 2})
    assert digest(Config().engine) != digest(load_config(None, ["engine.max_loras=9"]).engine)
