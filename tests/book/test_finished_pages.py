"""What is done to finished pages: once or twice gives the same, nothing is lost that a reader sees."""

from __future__ import annotations

import re

from book._tools.finished_pages import lighten, mend, plain_tokens

CSS = """
html[data-theme="light"] .highlight { background: #fefefe; color: #080808 }
html[data-theme="light"] .highlight .n { color: #080808 } /* Name */
html[data-theme="light"] .highlight .k { color: #6730C5 } /* Keyword */
html[data-theme="light"] .highlight .p { color: #080808; font-weight: bold } /* Punctuation */
html[data-theme="dark"] .highlight { background: #2b2b2b; color: #F8F8F2 }
html[data-theme="dark"] .highlight .n { color: #F8F8F2 } /* Name */
html[data-theme="dark"] .highlight .k { color: #F8F8F2 } /* Keyword */
html[data-theme="dark"] .highlight .p { color: #F8F8F2; font-weight: bold } /* Punctuation */
"""
PAGE = """
<script src="../_static/searchtools.js"></script><script src="../searchindex.js"></script><script src="x.js"></script>
<button class="btn search-button-field pst-js-only" title="Search" aria-label="Search" data-x="y">Search</button>
<i class="theme-switch fa-solid fa-sun   fa-lg" data-mode="light" title="Light"></i>
<div id="pst-primary-sidebar" class="bd-sidebar-primary bd-sidebar"></div>
<table><tr><th class="head"><p></p></th><th class="head"><p>name</p></th></tr></table>
<section id="exercise-content">do</section><section id="solution-content">done</section>
<img src="_static/minus.png" class="toggler" id="toggle-1" style="display: none" alt="-" />
<div class="highlight"><pre><span></span><span class="k">if</span> <span class="n">a &lt; b</span></pre></div>
<p><span class="n">a name in the reference</span></p>
<p>a line (<span class="math notranslate nohighlight">\\(y = ax\\)</span>),
then <span class="math x">\\(x\\)</span> alone</p>
<p><a class="reference" href="#claim-ATT-01">ATT-01</a> and <a href="#here">here</a></p>
<dt class="sig sig-object py"><span class="pre">padding_mask</span><span class="pre">key</span></dt>
"""


def words(page: str) -> str:
    return re.sub(r"<[^>]+>", "", page)


def test_only_words_that_look_like_the_block_in_every_mode_are_plain() -> None:
    assert plain_tokens(CSS) == {"n"}


def test_no_word_is_lost_and_a_second_time_changes_nothing() -> None:
    done = lighten(mend(PAGE), {"n"})
    assert words(done).split() == words(PAGE).split()
    assert lighten(mend(done), {"n"}) == done


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


def test_what_is_lighter() -> None:
    done = lighten(PAGE, {"n"})
    assert '<span class="k">if</span> a &lt; b</pre>' in done
    assert '<span class="n">a name in the reference</span>' in done
    assert "searchindex" not in done
    assert '<script src="x.js"></script>' in done
    assert "searchindex.js" in lighten(PAGE, {"n"}, searches=True)
