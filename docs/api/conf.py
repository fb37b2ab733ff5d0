"""Settings of Sphinx for the API reference. scripts/docs.sh runs Doxygen first, whose XML Breathe reads."""
import os

project = "ConvTranspose"
extensions = ["breathe"]
breathe_projects = {"convtranspose": os.environ["CONVTRANSPOSE_DOXYGEN_XML"]}
breathe_default_project = "convtranspose"
breathe_domain_by_extension = {"h": "c", "hpp": "cpp"}
breathe_show_include = False
html_theme = "alabaster"
html_theme_options = {"description": "Transposed convolution for C and C++", "page_width": "1080px", "sidebar_width": "240px"}
html_title = "ConvTranspose"
html_copy_source = False
html_show_sourcelink = False
