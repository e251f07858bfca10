"""Word forms, against tables written by hand."""

import pytest

from ttutor.corpora.lexicon import ADJECTIVES, NOUNS, VERBS

NOUN = {noun.english: noun for noun in NOUNS}
ADJECTIVE = {adjective.english: adjective for adjective in ADJECTIVES}
VERB = {verb.english: verb for verb in VERBS}

PLURALS = [
    # English singular, English plural, French singular, French plural, gender
    ("car", "cars", "voiture", "voitures", "f"),
    ("horse", "horses", "cheval", "chevaux", "m"),
    ("eye", "eyes", "œil", "yeux", "m"),
    ("bird", "birds", "oiseau", "oiseaux", "m"),
    ("knife", "knives", "couteau", "couteaux", "m"),
    ("owl", "owls", "hibou", "hiboux", "m"),
    ("nose", "noses", "nez", "nez", "m"),
    ("hero", "heroes", "héros", "héros", "m"),
    ("mouse", "mice", "souris", "souris", "f"),
    ("child", "children", "enfant", "enfants", "m"),
    ("man", "men", "homme", "hommes", "m"),
    ("tooth", "teeth", "dent", "dents", "f"),
    ("baby", "babies", "bébé", "bébés", "m"),
    ("city", "cities", "ville", "villes", "f"),
    ("church", "churches", "église", "églises", "f"),
    ("fox", "foxes", "renard", "renards", "m"),
    ("tomato", "tomatoes", "tomate", "tomates", "f"),
]

AGREEMENT = [
    # masculine singular, feminine singular, masculine plural, feminine plural
    ("red", "rouge", "rouge", "rouges", "rouges"),
    ("white", "blanc", "blanche", "blancs", "blanches"),
    ("dry", "sec", "sèche", "secs", "sèches"),
    ("happy", "heureux", "heureuse", "heureux", "heureuses"),
    ("active", "actif", "active", "actifs", "actives"),
    ("proud", "fier", "fière", "fiers", "fières"),
    ("loyal", "loyal", "loyale", "loyaux", "loyales"),
    ("big", "grand", "grande", "grands", "grandes"),
    ("good", "bon", "bonne", "bons", "bonnes"),
    ("beautiful", "beau", "belle", "beaux", "belles"),
    ("old", "vieux", "vieille", "vieux", "vieilles"),
    ("new", "nouveau", "nouvelle", "nouveaux", "nouvelles"),
    ("young", "jeune", "jeune", "jeunes", "jeunes"),
]

CONJUGATION = [
    # English, with he; then je, il, nous, ils
    ("sleep", "sleeps", "dors dort dormons dorment"),
    ("cry", "cries", "pleure pleure pleurons pleurent"),
    ("look for", "looks for", "cherche cherche cherchons cherchent"),
    ("eat", "eats", "mange mange mangeons mangent"),
    ("buy", "buys", "achète achète achetons achètent"),
    ("see", "sees", "vois voit voyons voient"),
    ("want", "wants", "veux veut voulons veulent"),
    ("follow", "follows", "suis suit suivons suivent"),
    ("choose", "chooses", "choisis choisit choisissons choisissent"),
    ("disappear", "disappears", "disparais disparaît disparaissons disparaissent"),
]


@pytest.mark.parametrize(("english", "english_plural", "french", "french_plural", "gender"), PLURALS)
def test_nouns_form_their_plurals(english, english_plural, french, french_plural, gender):
    noun = NOUN[english]
    assert (noun.in_english(True), noun.in_french(False), noun.in_french(True), noun.gender) == (
        english_plural,
        french,
        french_plural,
        gender,
    )


@pytest.mark.parametrize(("english", "masculine", "feminine", "masculines", "feminines"), AGREEMENT)
def test_adjectives_agree(english, masculine, feminine, masculines, feminines):
    adjective = ADJECTIVE[english]
    forms = [adjective.in_french(gender, plural) for plural in (False, True) for gender in "mf"]
    assert forms == [masculine, feminine, masculines, feminines]


@pytest.mark.parametrize(("english", "third", "french"), CONJUGATION)
def test_verbs_are_conjugated(english, third, french):
    verb = VERB[english]
    assert (verb.in_english(False), verb.in_english(True)) == (english, third)
    persons = [(1, False), (3, False), (1, True), (3, True)]
    assert [verb.in_french(person, plural) for person, plural in persons] == french.split()
