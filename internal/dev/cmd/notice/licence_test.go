package main

import (
	"slices"
	"testing"
)

// TestLicencesIn: a licence that asks for more than a notice is refused, and an unknown one has no identifier.
func TestLicencesIn(t *testing.T) {
	const redistribution = "Redistribution and use in source and binary forms, with or without\nmodification"
	for _, c := range []struct {
		text    string
		ids     []string
		refused bool
	}{
		{"                 Apache License\n           Version 2.0, January 2004", []string{"Apache-2.0"}, false},
		{"Licensed under the Apache License, Version 2.0 (the \"License\")", []string{"Apache-2.0"}, false},
		{"// Permission is hereby granted, free of charge, to any\n// person obtaining a copy of", []string{"MIT"}, false},
		{redistribution, []string{"BSD-2-Clause"}, false},
		{redistribution + "\n * Neither the name may be used to endorse or promote\n   products derived from this software",
			[]string{"BSD-3-Clause"}, false},
		{"GNU GENERAL PUBLIC\n LICENSE", nil, true},
		{"all rights reserved", nil, false},
	} {
		ids, refused := licencesIn(c.text)
		if !slices.Equal(ids, c.ids) || (len(refused) > 0) != c.refused {
			t.Errorf("%q: got %q, refused %q", c.text, ids, refused)
		}
	}
}
