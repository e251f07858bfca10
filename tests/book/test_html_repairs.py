"""What is done to finished pages: once or twice gives the same, nothing is lost that a reader sees."""

from __future__ import annotations

import re

from book._tools.html_repairs import mend

PAGE = """
<script src="../_static/searchtools.js"></script><script src="../searchindex.js"></script><script src="x.js"></script>
<button class="btn search-button-field pst-js-only" title="Search" aria-label="Search" data-x="y">Search</button>
<i class="theme-switch fa-solid fa-sun   fa-lg" data-mode="light" title="Light"></i>
<div id="pst-primary-sidebar" class="bd-sidebar-primary bd-sidebar"></div>
<table><tr><th class="head"><p></p></th><th class="head"><p>name</p></th></tr></table>
<section id="exercise-content">do</section><section id="solution-content">done</section>
<img src="_static/minus.png" class="toggler" id="toggle-1" style="display: none" alt="-" />
<p>a line (<span class="math notranslate nohighlight">\\(y = ax\\)</span>),
then <span class="math x">\\(x\\)</span> alone</p>
<p><a class="reference" href="#claim-ATT-01">ATT-01</a> and <a href="#here">here</a></p>
<dt class="sig sig-object py"><span class="pre">padding_mask</span><span class="pre">key</span></dt>
"""


def words(page: str) -> str:
    return re.sub(r"<[^>]+>", "", page)


def test_no_word_is_lost_and_a_second_time_changes_nothing() -> None:
    done = mend(PAGE)
    assert words(done).split() == words(PAGE).split()
    assert mend(done) == done


def test_what_is_mended() -> None:
    done = mend(PAGE)
    assert '<button class="btn search-button-field pst-js-only" data-x="y">' in done
    assert 'data-mode="light"></i>' in done
    assert 'class="bd-sidebar-primary bd-sidebar" role="region" aria-label="The book"' in done
    assert '<td class="head"></td><th class="head"><p>name</p></th>' in done
    assert "id=" not in done.replace('id="pst-primary-sidebar"', "")


def test_what_stays_on_one_line() -> None:
    done = mend(PAGE)
    formula = '<span class="math notranslate nohighlight">\\(y = ax\\)</span>'
    assert f'a line <span class="held">({formula}),</span>\nthen <span class="math x">' in done
    assert '"><span class="held">ATT-01</span></a> and <a href="#here">here</a>' in done


def test_a_long_name_in_a_signature_may_break_between_its_words() -> None:
    assert '<span class="pre">padding_<wbr>mask</span><span class="pre">key</span>' in mend(PAGE)
