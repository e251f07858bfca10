"""How words change their form in English and in French: the rules, with the exceptions kept in the lexicon."""

import unicodedata

MUTE_H = frozenset(
    {"homme", "hommes", "hôtel", "hôtels", "heure", "heures", "histoire", "histoires", "honnête", "honnêtes"}
)
"""French words whose h is mute: l'homme. Every other h is aspirated: le hibou, le héros."""

ELIDES_ALTHOUGH_CONSONANT = frozenset({"yeux"})
"""Spelt with a consonant, heard as a vowel by the little words before it: pas d'yeux."""

SOUNDS_LIKE_VOWEL = frozenset({"hour", "honest"})
"""English words with a silent h: an hour."""

SOUNDS_LIKE_CONSONANT = frozenset({"university", "useful"})
"""English words that begin with the sound of "you": a university."""


def english_plural(singular: str) -> str:
    """The regular English plural.

    >>> [english_plural(word) for word in ("car", "witch", "city", "boy")]
    ['cars', 'witches', 'cities', 'boys']
    """
    return add_english_s(singular)


def add_english_s(word: str) -> str:
    """The ending -s, -es or -ies, which plural nouns and verbs of the third person share.

    >>> [add_english_s(word) for word in ("sleep", "watch", "cry", "fox")]
    ['sleeps', 'watches', 'cries', 'foxes']
    """
    if word.endswith(("s", "x", "z", "ch", "sh")):
        return word + "es"
    if word.endswith("y") and word[-2] not in "aeiou":
        return word[:-1] + "ies"
    return word + "s"


def english_article(next_word: str) -> str:
    """ "a" or "an", decided by the sound of the word that follows.

    >>> [english_article(word) for word in ("car", "apple", "hour", "university")]
    ['a', 'an', 'an', 'a']
    """
    vowel = next_word[0] in "aeiou" and next_word not in SOUNDS_LIKE_CONSONANT
    return "an" if vowel or next_word in SOUNDS_LIKE_VOWEL else "a"


def french_plural(singular: str) -> str:
    """The regular French plural: -al becomes -aux, -eau and -eu take x, words in -s, -x, -z stay as they are.

    >>> [french_plural(word) for word in ("chat", "cheval", "bateau", "jeu", "souris")]
    ['chats', 'chevaux', 'bateaux', 'jeux', 'souris']
    """
    if singular.endswith(("s", "x", "z")):
        return singular
    if singular.endswith("al"):
        return singular[:-1] + "ux"
    if singular.endswith(("eau", "eu")):
        return singular + "x"
    return singular + "s"


def french_feminine(masculine: str) -> str:
    """The regular feminine of an adjective: -eux becomes -euse, -if becomes -ive, any other takes e unless it has one.

    >>> [french_feminine(word) for word in ("vert", "rouge", "heureux", "actif")]
    ['verte', 'rouge', 'heureuse', 'active']
    """
    if masculine.endswith("eux"):
        return masculine[:-1] + "se"
    if masculine.endswith("if"):
        return masculine[:-1] + "ve"
    return masculine if masculine.endswith("e") else masculine + "e"


def conjugate_er(infinitive: str) -> tuple[str, str, str, str]:
    """Present tense of a regular verb in -er: je, il or elle, nous, ils or elles. A g stays soft: nous mangeons.

    >>> conjugate_er("chanter")
    ('chante', 'chante', 'chantons', 'chantent')
    >>> conjugate_er("nager")[2]
    'nageons'
    """
    stem = infinitive.removesuffix("er")
    soft = "e" if stem.endswith("g") else ""
    return stem + "e", stem + "e", stem + soft + "ons", stem + "ent"


def begins_with_vowel_sound(french_word: str) -> bool:
    """Whether le, de, ne, je in front of this French word lose their e.

    >>> [begins_with_vowel_sound(word) for word in ("oiseau", "étoile", "œil", "homme", "hibou", "chat")]
    [True, True, True, True, False, False]
    """
    if french_word in MUTE_H or french_word in ELIDES_ALTHOUGH_CONSONANT:
        return True
    first = unicodedata.normalize("NFD", french_word)[0]
    return first in "aeiouœæ"


def elide(little_word: str, next_words: str) -> str:
    """Join le, la, de, ne or je to what follows, with an apostrophe where French wants one.

    >>> elide("le", "oiseau"), elide("la", "petite oie"), elide("ne", "aime pas")
    ("l'oiseau", 'la petite oie', "n'aime pas")
    """
    if begins_with_vowel_sound(next_words.split()[0]):
        return f"{little_word[:-1]}'{next_words}"
    return f"{little_word} {next_words}"


def contract(preposition: str, phrase: str) -> str:
    """Join a preposition to a French noun phrase: after de, le becomes du, les becomes des, and des disappears.

    >>> contract("près de", "le jardin"), contract("près de", "les arbres"), contract("près de", "une maison")
    ('près du jardin', 'près des arbres', "près d'une maison")
    >>> contract("près de", "des arbres"), contract("près de", "de petits arbres"), contract("dans", "des arbres")
    ("près d'arbres", 'près de petits arbres', 'dans des arbres')
    """
    if not preposition.endswith("de"):
        return f"{preposition} {phrase}"
    lead = preposition.removesuffix("de")
    article, _, rest = phrase.partition(" ")
    match article:
        case "le":
            return f"{lead}du {rest}"
        case "les":
            return f"{lead}des {rest}"
        case "des":
            return lead + elide("de", rest)
        case "de":
            return lead + phrase
    return lead + elide("de", phrase)
