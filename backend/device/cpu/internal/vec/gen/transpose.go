package main

import "strings"

func transposes(s isa, out *strings.Builder) {}
