package tokenizer

// ggufPattern is a pre-tokenizer, and what goes with it.
type ggufPattern struct {
	patterns []string
	nfc      bool // text is normalized to NFC first
	whole    bool // a word that is a token needs no merges
	bos      bool // a beginning-of-sequence token is added by default
}

// The patterns of released tokenizers.
const (
	numberPattern = `[\p{N}\x{11de0}-\x{11de9}\x{16ff4}-\x{16ff6}]` // the component Digits, with digits of Unicode 17
	gpt2Pattern   = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`

	contraction   = `(?i:'s|'t|'re|'ve|'m|'ll|'d)`
	symbols       = `| ?[^\s\p{L}\p{N}]+[\r\n]*`
	whiteSpace    = `|\s*[\r\n]+|\s+(?!\S)|\s+`
	qwen2Pattern  = contraction + `|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}` + symbols + whiteSpace
	qwen35Pattern = contraction + `|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*` + whiteSpace
	cl100kPattern = contraction + `|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}` + symbols + whiteSpace

	upper         = `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]`
	lowerLetters  = `[\p{Ll}\p{Lm}\p{Lo}\p{M}]`
	beginsUpper   = `[^\r\n\p{L}\p{N}]?` + upper + `+` + lowerLetters + `*`
	endsLower     = `[^\r\n\p{L}\p{N}]?` + upper + `*` + lowerLetters + `+`
	o200kRest     = `| ?[^\s\p{L}\p{N}]+[\r\n/]*` + whiteSpace
	tekkenPattern = endsLower + `|` + beginsUpper + `|\p{N}` + o200kRest
	o200kPattern  = endsLower + contraction + `?|` + beginsUpper + contraction + `?|\p{N}{1,3}` + o200kRest

	cjkPattern      = `[一-龥぀-ゟ゠-ヿ]+`
	deepseekPattern = "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+" +
		"| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"
)

// ggufPatterns are the values of tokenizer.ggml.pre, as llama.cpp names them.
var ggufPatterns = map[string]ggufPattern{
	"gpt-2":            {patterns: []string{gpt2Pattern}},
	"phi-2":            {patterns: []string{gpt2Pattern}},
	"mpt":              {patterns: []string{gpt2Pattern}},
	"olmo":             {patterns: []string{gpt2Pattern}},
	"starcoder":        {patterns: []string{numberPattern, gpt2Pattern}},
	"refact":           {patterns: []string{numberPattern, gpt2Pattern}},
	"smollm":           {patterns: []string{numberPattern, gpt2Pattern}},
	"codeshell":        {patterns: []string{numberPattern, gpt2Pattern}},
	"command-r":        {patterns: []string{numberPattern, gpt2Pattern}, nfc: true},
	"qwen2":            {patterns: []string{qwen2Pattern}, nfc: true},
	"deepseek-r1-qwen": {patterns: []string{qwen2Pattern}, nfc: true},
	"qwen35":           {patterns: []string{qwen35Pattern}, nfc: true},
	"stablelm2":        {patterns: []string{qwen2Pattern}},
	"llama3":           {patterns: []string{cl100kPattern}, whole: true, bos: true},
	"llama-v3":         {patterns: []string{cl100kPattern}, whole: true, bos: true},
	"llama-bpe":        {patterns: []string{cl100kPattern}, whole: true, bos: true},
	"falcon3":          {patterns: []string{cl100kPattern}, whole: true, bos: true},
	"dbrx":             {patterns: []string{cl100kPattern}},
	"smaug-bpe":        {patterns: []string{cl100kPattern}},
	"glm4":             {patterns: []string{cl100kPattern}},
	"chatglm-bpe":      {patterns: []string{cl100kPattern}},
	"tekken":           {patterns: []string{tekkenPattern}, whole: true, bos: true},
	"gpt-4o":           {patterns: []string{o200kPattern}},
	"llama4":           {patterns: []string{o200kPattern}},
	"deepseek-v3":      {patterns: []string{`\p{N}{1,3}`, cjkPattern, deepseekPattern}},
	"deepseek-coder":   {patterns: []string{"[\r\n]", `\s?\p{L}+`, `\s?\p{P}+`, `[一-龥ࠀ-一가-퟿]+`, `\p{N}`}},
}
