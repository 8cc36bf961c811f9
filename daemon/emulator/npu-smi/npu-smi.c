/* npu-smi: the tables that the command prints on a node, read off the emulated node. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node.h"

#define TOOL_VERSION "25.3.rc1"
enum { RESERVED_PER_MILLE = 48 }; /* of HBM that the driver keeps: 3145 MB of 65536 */

static emuSlot slots[EMU_MAX_SLOTS];
static int slotCount;

static bool twoChips(void) { return emuSettingsGet()->soc == EMU_SOC_A3; }

static int chipsOfNpu(int npu) {
    int left = emuSettingsGet()->npus - (twoChips() ? npu * 2 : npu);
    int most = twoChips() ? 2 : 1;
    return left < 0 ? 0 : left < most ? left : most;
}

static int npuCount(void) { return twoChips() ? (emuSettingsGet()->npus + 1) / 2 : emuSettingsGet()->npus; }

static int phyId(int npu, int chip) { return twoChips() ? npu * 2 + chip : npu; }

static unsigned long megabytes(uint64_t bytes) { return (unsigned long)((bytes + (1 << 20) - 1) >> 20); }

static unsigned long hbmTotal(void) { return megabytes(emuSettingsGet()->hbm); }

static unsigned long hbmUsed(int phy) {
    uint64_t used = 0;
    for (int i = 0; i < slotCount; i++) used += slots[i].chip[phy].hbm;
    unsigned long shown = hbmTotal() * RESERVED_PER_MILLE / 1000 + megabytes(used);
    return shown < hbmTotal() ? shown : hbmTotal();
}

/* As the kernel has it; a process that ended meanwhile has none. What is not printable cannot be let into a table. */
static const char *processName(int pid) {
    static char name[64];
    char path[32];
    snprintf(path, sizeof path, "/proc/%d/comm", pid);
    FILE *file = fopen(path, "re");
    name[0] = '\0';
    if (file && !fgets(name, sizeof name, file)) name[0] = '\0';
    if (file) fclose(file);
    name[strcspn(name, "\n")] = '\0';
    for (unsigned char *at = (unsigned char *)name; *at; at++)
        if (*at < ' ' || *at == '|' || *at >= 127) *at = '?';
    return name;
}

#define LINE "+------------------------------------------------------------------------------------------------+\n"
#define COLUMNS "+---------------------------+---------------+----------------------------------------------------+\n"
#define DOUBLE "+===========================+===============+====================================================+\n"

static void printChip(int npu, int chip, const char *name) {
    char power[16] = "-", first[32], place[32], bus[24], hbm[32];
    int phy = phyId(npu, chip);
    if (chip == 0) snprintf(power, sizeof power, "%d.%d", twoChips() ? 165 : 90 + npu % 8, npu % 10);
    snprintf(bus, sizeof bus, "0000:%02X:00.0", 0x81 + phy * 2);
    snprintf(first, sizeof first, "%-5d %s", npu, name);
    snprintf(hbm, sizeof hbm, "%lu / %lu", hbmUsed(phy), hbmTotal());
    if (twoChips()) snprintf(place, sizeof place, "%-5d %d", chip, phy);
    else snprintf(place, sizeof place, "%d", chip);
    printf("| %-25s | %-13s | %-11s %-17d %-21s|\n", first, "OK", power, 36, "0    / 0");
    printf("| %-25s | %-13s | %-11d %-17s %-21s|\n", place, bus, 0, "0    / 0", hbm);
}

static void printChips(void) {
    static const char *const names[] = {[EMU_SOC_A2] = "910B1", [EMU_SOC_A3] = "Ascend910", [EMU_SOC_950] = "Ascend950PR"};
    char title[128];
    snprintf(title, sizeof title, "npu-smi %-24s Version: %s", TOOL_VERSION, TOOL_VERSION);
    printf(LINE "| %-95s|\n" COLUMNS, title);
    printf("| %-25s | %-13s | %-11s %-17s %-21s|\n", "NPU   Name", "Health", "Power(W)", "Temp(C)",
           "Hugepages-Usage(page)");
    printf("| %-25s | %-13s | %-11s %-17s %-21s|\n" DOUBLE, twoChips() ? "Chip  Phy-ID" : "Chip", "Bus-Id", "AICore(%)",
           "Memory-Usage(MB)", "HBM-Usage(MB)");
    for (int npu = 0; npu < npuCount(); npu++) {
        for (int chip = 0; chip < chipsOfNpu(npu); chip++) {
            if (chip) printf(LINE);
            printChip(npu, chip, names[emuSettingsGet()->soc]);
        }
        printf(DOUBLE);
    }
}

static void printProcesses(void) {
    printf(COLUMNS "| %-25s | %-13s | %-24s | %-24s|\n" DOUBLE, "NPU     Chip", "Process id", "Process name",
           "Process memory(MB)");
    for (int npu = 0; npu < npuCount(); npu++) {
        int found = 0;
        for (int chip = 0; chip < chipsOfNpu(npu); chip++)
            for (int i = 0; i < slotCount; i++) {
                const emuUse *use = &slots[i].chip[phyId(npu, chip)];
                if (!use->users && !use->hbm) continue;
                printf("| %-7d %-17d | %-13d | %-24s | %-24lu|\n", npu, chip, slots[i].pid, processName(slots[i].pid),
                       megabytes(use->hbm));
                found++;
            }
        if (!found) {
            char text[64];
            snprintf(text, sizeof text, "No running processes found in NPU %d", npu);
            printf("| %-95s|\n", text);
        }
        printf(DOUBLE);
    }
}

static void printUsages(int npu, int chip) {
    unsigned long rate = hbmTotal() ? (hbmUsed(phyId(npu, chip)) * 100 + hbmTotal() / 2) / hbmTotal() : 0;
    printf("\t%-31s: %lu\n", "HBM Capacity(MB)", hbmTotal());
    printf("\t%-31s: %lu\n", "HBM Usage Rate(%)", rate);
    printf("\t%-31s: 0\n\t%-31s: 0\n\t%-31s: 0\n", "Aicore Usage Rate(%)", "Aivector Usage Rate(%)",
           "NPU Utilization(%)");
    printf("\t%-31s: %d\n\n", "Chip ID", chip);
}

static void printMemory(int npu, int chip) {
    int found = 0;
    for (int i = 0; i < slotCount; i++) {
        const emuUse *use = &slots[i].chip[phyId(npu, chip)];
        if (!use->users && !use->hbm) continue;
        printf("\tProcess id:%d Process name:%-18s Process memory(MB):%lu\n", slots[i].pid, processName(slots[i].pid),
               megabytes(use->hbm));
        found++;
    }
    if (!found) printf("\tNo process in device.\n");
    printf("\t%-31s: %d\n\n", "Chip ID", chip);
}

static int usage(void) {
    fprintf(stderr, "The emulated npu-smi knows:\n  npu-smi info\n  npu-smi info -t proc-mem|usages -i NPU [-c CHIP]\n");
    return 1;
}

static bool number(const char *text, int *value) {
    char *end;
    long parsed = strtol(text, &end, 10);
    *value = (int)parsed;
    return *text && !*end && parsed >= 0 && parsed < EMU_MAX_CHIPS;
}

static int show(const char *type, int npu, int chip) {
    bool usages = type && strcmp(type, "usages") == 0;
    if (!type) {
        printChips();
        printProcesses();
        return 0;
    }
    if (npu < 0 || (!usages && strcmp(type, "proc-mem") != 0)) return usage();
    if (npu >= npuCount() || chip >= chipsOfNpu(npu)) {
        fprintf(stderr, "This device does not exist.\n");
        return 1;
    }
    printf("\t%-31s: %d\n", "NPU ID", npu);
    if (usages) printf("\t%-31s: %d\n\n", "Chip Count", chipsOfNpu(npu));
    for (int i = 0; i < chipsOfNpu(npu); i++) {
        if (chip >= 0 && i != chip) continue;
        if (usages) printUsages(npu, i);
        else printMemory(npu, i);
    }
    return 0;
}

int main(int argc, char **argv) {
    const char *type = NULL;
    int npu = -1, chip = -1;
    if (argc < 2 || strcmp(argv[1], "info") != 0 || argc % 2 != 0) return usage();
    for (int i = 2; i < argc; i += 2) {
        if (strcmp(argv[i], "-t") == 0) type = argv[i + 1];
        else if (strcmp(argv[i], "-i") != 0 && strcmp(argv[i], "-c") != 0) return usage();
        else if (!number(argv[i + 1], argv[i][1] == 'i' ? &npu : &chip)) return usage();
    }
    if (!type && argc != 2) return usage();
    slotCount = emuNodeSlots(slots);
    if (slotCount < 0) {
        fprintf(stderr, "npu-smi: %s\n", emuNodeProblem());
        return 1;
    }
    int code = show(type, npu, chip);
    if (fflush(stdout) == 0 && !ferror(stdout)) return code;
    perror("npu-smi");
    return 1;
}
