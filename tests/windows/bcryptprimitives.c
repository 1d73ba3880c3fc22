/* The one function of bcryptprimitives.dll that programs in Rust import, for Wine versions that lack this library. Windows has
   it since version 7. Built and used by .ci/windows. */

#include <stddef.h>

/* RtlGenRandom, exported by advapi32 under this name. */
__declspec(dllimport) unsigned char __stdcall SystemFunction036(void *buffer, unsigned long length);

/* The largest request passed on at once. */
#define MAX_PART (1UL << 20)

/* Fills a buffer with random bytes. Documented to return TRUE always. */
__declspec(dllexport) int __stdcall ProcessPrng(unsigned char *buffer, size_t length) {
    while (length > 0) {
        unsigned long part = length < MAX_PART ? (unsigned long)length : MAX_PART;
        if (!SystemFunction036(buffer, part)) {
            return 0;
        }
        buffer += part;
        length -= part;
    }
    return 1;
}
