package tiny_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/goart-dev/art/model/tiny"
)

// The built-in model as a folder, for other programs. To train it, name it as the base of a model: "tiny".
func Example() {
	dir, err := os.MkdirTemp("", "tiny")
	check(err)
	defer os.RemoveAll(dir)
	checkpoint, err := tiny.Open()
	check(err)
	defer checkpoint.Close()
	check(checkpoint.Save(dir, nil))
	vocabulary, config := tiny.Tokenizer()
	check(os.WriteFile(filepath.Join(dir, "tokenizer.json"), vocabulary, 0o666))
	check(os.WriteFile(filepath.Join(dir, "tokenizer_config.json"), config, 0o666))

	files, err := os.ReadDir(dir)
	check(err)
	for _, file := range files {
		fmt.Println(file.Name())
	}
	// Output:
	// config.json
	// model.safetensors
	// tokenizer.json
	// tokenizer_config.json
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
