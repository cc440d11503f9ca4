package vec

var kernelsOf = [numLevels]*kernels{Portable: &kernelsPortable, AVX2: &kernelsAVX2, AVX512: &kernelsAVX512}
