"""The words of the embedded English-French corpus, with whatever the rules of `morphology` do not give.

Each English word has exactly one French translation here, so that a sentence in English determines its sentence in
French; words that would need more to decide (you, they, sheep) are left out on purpose.
"""

from dataclasses import dataclass

from ttutor.corpora.morphology import (
    add_english_s,
    conjugate_er,
    english_plural,
    french_feminine,
    french_plural,
)


@dataclass(frozen=True)
class Noun:
    """A noun in both languages; plurals follow the rule unless they are given."""

    english: str
    french: str
    gender: str
    irregular_english: str = ""
    irregular_french: str = ""

    def in_english(self, plural: bool) -> str:
        """The English form."""
        return (self.irregular_english or english_plural(self.english)) if plural else self.english

    def in_french(self, plural: bool) -> str:
        """The French form."""
        return (self.irregular_french or french_plural(self.french)) if plural else self.french


@dataclass(frozen=True)
class Adjective:
    """An adjective; `before_noun` says where French puts it, `before_vowel` is a form such as bel (un bel arbre)."""

    english: str
    french: str
    irregular_feminine: str = ""
    before_noun: bool = False
    before_vowel: str = ""
    irregular_plural: str = ""

    def in_french(self, gender: str, plural: bool) -> str:
        """The French form that agrees with a noun."""
        if gender == "f":
            return french_plural(self.feminine) if plural else self.feminine
        return (self.irregular_plural or french_plural(self.french)) if plural else self.french

    @property
    def feminine(self) -> str:
        """The French feminine, singular."""
        return self.irregular_feminine or french_feminine(self.french)


@dataclass(frozen=True)
class Verb:
    """A verb in the present tense; `irregular` gives the four forms for je, il, nous, ils when -er does not."""

    english: str
    french: str
    transitive: bool = False
    irregular: str = ""

    def in_english(self, third_person_singular: bool) -> str:
        """The English form in the present tense."""
        verb, _, particle = self.english.partition(" ")
        form = add_english_s(verb) if third_person_singular else verb
        return f"{form} {particle}".strip()

    def in_french(self, person: int, plural: bool) -> str:
        """The French form in the present tense; person is 1 or 3."""
        forms = tuple(self.irregular.split()) or conjugate_er(self.french)
        return forms[2 * plural + (person == 3)]


NOUNS = tuple(
    Noun(*entry)
    for entry in (
        # masculine
        ("dog", "chien", "m"),
        ("cat", "chat", "m"),
        ("lion", "lion", "m"),
        ("fox", "renard", "m"),
        ("king", "roi", "m"),
        ("train", "train", "m"),
        ("book", "livre", "m"),
        ("garden", "jardin", "m"),
        ("doctor", "médecin", "m"),
        ("baby", "bébé", "m"),
        ("butterfly", "papillon", "m"),
        ("wolf", "loup", "m", "wolves"),
        ("foot", "pied", "m", "feet"),
        ("horse", "cheval", "m"),
        ("newspaper", "journal", "m"),
        ("boat", "bateau", "m"),
        ("castle", "château", "m"),
        ("knife", "couteau", "m", "knives"),
        ("game", "jeu", "m"),
        ("nose", "nez", "m"),
        ("owl", "hibou", "m", "", "hiboux"),
        ("hero", "héros", "m", "heroes"),
        ("animal", "animal", "m"),
        ("bird", "oiseau", "m"),
        ("eye", "œil", "m", "", "yeux"),
        ("bear", "ours", "m"),
        ("man", "homme", "m", "men"),
        ("child", "enfant", "m", "children"),
        ("uncle", "oncle", "m"),
        ("tree", "arbre", "m"),
        ("elephant", "éléphant", "m"),
        ("plane", "avion", "m"),
        ("hotel", "hôtel", "m"),
        # feminine
        ("car", "voiture", "f"),
        ("house", "maison", "f"),
        ("girl", "fille", "f"),
        ("queen", "reine", "f"),
        ("cow", "vache", "f"),
        ("flower", "fleur", "f"),
        ("apple", "pomme", "f"),
        ("city", "ville", "f"),
        ("door", "porte", "f"),
        ("witch", "sorcière", "f"),
        ("ant", "fourmi", "f"),
        ("woman", "femme", "f", "women"),
        ("leaf", "feuille", "f", "leaves"),
        ("tooth", "dent", "f", "teeth"),
        ("mouse", "souris", "f", "mice"),
        ("tomato", "tomate", "f", "tomatoes"),
        ("goose", "oie", "f", "geese"),
        ("star", "étoile", "f"),
        ("school", "école", "f"),
        ("island", "île", "f"),
        ("church", "église", "f"),
        ("bee", "abeille", "f"),
        ("idea", "idée", "f"),
        ("hour", "heure", "f"),
        ("story", "histoire", "f"),
        ("university", "université", "f"),
    )
)

ADJECTIVES = tuple(
    Adjective(*entry)
    for entry in (
        ("small", "petit", "", True),
        ("big", "grand", "", True),
        ("young", "jeune", "", True),
        ("pretty", "joli", "", True),
        ("good", "bon", "bonne", True),
        ("beautiful", "beau", "belle", True, "bel"),
        ("old", "vieux", "vieille", True, "vieil"),
        ("new", "nouveau", "nouvelle", True, "nouvel"),
        ("red", "rouge"),
        ("yellow", "jaune"),
        ("green", "vert"),
        ("black", "noir"),
        ("blue", "bleu", "", False, "", "bleus"),
        ("grey", "gris"),
        ("white", "blanc", "blanche"),
        ("dry", "sec", "sèche"),
        ("strong", "fort"),
        ("heavy", "lourd"),
        ("tired", "fatigué"),
        ("sad", "triste"),
        ("happy", "heureux"),
        ("curious", "curieux"),
        ("active", "actif"),
        ("proud", "fier", "fière"),
        ("loyal", "loyal"),
        ("honest", "honnête"),
        ("useful", "utile"),
        ("strange", "étrange"),
    )
)

VERBS = tuple(
    Verb(*entry)
    for entry in (
        ("sleep", "dormir", False, "dors dort dormons dorment"),
        ("run", "courir", False, "cours court courons courent"),
        ("leave", "partir", False, "pars part partons partent"),
        ("laugh", "rire", False, "ris rit rions rient"),
        ("grow", "grandir", False, "grandis grandit grandissons grandissent"),
        ("wait", "attendre", False, "attends attend attendons attendent"),
        ("disappear", "disparaître", False, "disparais disparaît disparaissons disparaissent"),
        ("sing", "chanter"),
        ("dance", "danser"),
        ("fall", "tomber"),
        ("work", "travailler"),
        ("swim", "nager"),
        ("cry", "pleurer"),
        ("arrive", "arriver"),
        ("listen", "écouter"),
        ("see", "voir", True, "vois voit voyons voient"),
        ("take", "prendre", True, "prends prend prenons prennent"),
        ("want", "vouloir", True, "veux veut voulons veulent"),
        ("follow", "suivre", True, "suis suit suivons suivent"),
        ("hear", "entendre", True, "entends entend entendons entendent"),
        ("choose", "choisir", True, "choisis choisit choisissons choisissent"),
        ("buy", "acheter", True, "achète achète achetons achètent"),
        ("love", "aimer", True),
        ("avoid", "éviter", True),
        ("eat", "manger", True),
        ("watch", "regarder", True),
        ("find", "trouver", True),
        ("look for", "chercher", True),
        ("carry", "porter", True),
        ("hide", "cacher", True),
    )
)

PREPOSITIONS = (("in", "dans"), ("under", "sous"), ("behind", "derrière"), ("near", "près de"))
