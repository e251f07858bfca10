"""A trained translator in the form that another program runs: Hugging Face, CTranslate2 or ONNX Runtime.

.. code-block:: python

    translator = Translator.load("ttutor-runs/embedded")
    export_translator(translator, "my-translator", "ctranslate2", quantization="int8")
    load_exported("my-translator").translate(["The dog sleeps."])[0].text

What is needed besides the package is in its extra ``serve``.
"""

from ttutor.translation.export.exporting import FORMS, export_translator, load_exported
from ttutor.translation.export.folder import EXPORT, is_exported

__all__ = ["EXPORT", "FORMS", "export_translator", "is_exported", "load_exported"]
