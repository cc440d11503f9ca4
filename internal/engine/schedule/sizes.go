package schedule

// Sizes are sizes that graphs are compiled for, ascending.
type Sizes []int

// Fit returns the smallest size that holds n, or the largest if none does.
func (s Sizes) Fit(n int) int {
	for _, size := range s {
		if size >= n {
			return size
		}
	}
	return s.Largest()
}

// Largest returns the largest size.
func (s Sizes) Largest() int { return s[len(s)-1] }
