/* Runs scenarios: linked in, or from a plugin loaded with RTLD_LOCAL as Python loads extensions. */
#include <dlfcn.h>
#include <stdio.h>

#ifdef PLUGIN
int main(int argc, char **argv) {
    void *plugin = dlopen(PLUGIN, RTLD_NOW | RTLD_LOCAL);
    int (*scenario)(int, char **) = plugin != NULL ? (int (*)(int, char **))dlsym(plugin, "scenario") : NULL;
    if (scenario == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 90;
    }
    return scenario(argc, argv);
}
#else
int scenario(int argc, char **argv);
int main(int argc, char **argv) {
    return scenario(argc, argv);
}
#endif
