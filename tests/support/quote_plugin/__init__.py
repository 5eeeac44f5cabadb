"""A plugin as a user would write one: a method that copies quotes out of the pages it looked up."""
