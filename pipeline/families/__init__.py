"""Find, read and copy prompt families: folders of templates and a family.yaml."""
