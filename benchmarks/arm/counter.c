/* A plugin of QEMU's user mode: counts the guest's instructions and writes the count at each mark.
 *
 * A mark is the guest's getpriority(PRIO_USER, MARK | n), which no such user answers. Written to the file of the
 * argument out=: a line "mark n count". With profile=on, after the mark LAST also a line for each block of code that
 * ran since the mark FIRST: "block address runs", and a line "  text" for each of its instructions.
 *
 * The declarations are of QEMU's plugin interface, versions 1 and 2 (QEMU 6.0 to 8.2).
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORTED __attribute__((visibility("default")))

typedef uint64_t Id;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
typedef void (*Translated)(Id, struct qemu_plugin_tb *);
typedef void (*SystemCall)(Id, unsigned, int64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                           uint64_t);
void qemu_plugin_register_vcpu_tb_trans_cb(Id, Translated);
void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *, int, void *, uint64_t);
void qemu_plugin_register_vcpu_syscall_cb(Id, SystemCall);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *);
char *qemu_plugin_insn_disas(const struct qemu_plugin_insn *);

enum { ADD_U64 = 0, GETPRIORITY = 141, PRIO_USER = 2, MARK = 0x7a000000, FIRST = 0xfffffe, LAST = 0xffffff };

struct block {
  struct block *next;
  uint64_t runs, before, address;
  size_t count;
  char *text[];
};

static struct block *blocks;
static uint64_t instructions;
static FILE *out;
static bool profile;

EXPORTED int qemu_plugin_version = 1;

static void translated(Id id, struct qemu_plugin_tb *tb) {
  (void)id;
  size_t count = qemu_plugin_tb_n_insns(tb);
  qemu_plugin_register_vcpu_tb_exec_inline(tb, ADD_U64, &instructions, count);
  struct block *b = profile ? calloc(1, sizeof *b + count * sizeof *b->text) : NULL;
  if (!b) return;
  b->count = count, b->address = qemu_plugin_tb_vaddr(tb), b->next = blocks, blocks = b;
  for (size_t i = 0; i < count; ++i) b->text[i] = qemu_plugin_insn_disas(qemu_plugin_tb_get_insn(tb, i));
  qemu_plugin_register_vcpu_tb_exec_inline(tb, ADD_U64, &b->runs, 1);
}

static void write_blocks(void) {
  for (struct block *b = blocks; b; b = b->next) {
    if (b->runs == b->before) continue;
    fprintf(out, "block %" PRIx64 " %" PRIu64 "\n", b->address, b->runs - b->before);
    for (size_t i = 0; i < b->count; ++i) fprintf(out, "  %s\n", b->text[i]);
  }
}

static void called(Id id, unsigned cpu, int64_t number, uint64_t which, uint64_t who, uint64_t c, uint64_t d, uint64_t e,
                   uint64_t f, uint64_t g, uint64_t h) {
  (void)id, (void)cpu, (void)c, (void)d, (void)e, (void)f, (void)g, (void)h;
  uint32_t mark = (uint32_t)who;
  if (number != GETPRIORITY || (uint32_t)which != PRIO_USER || mark >> 24 != MARK >> 24) return;
  fprintf(out, "mark %u %" PRIu64 "\n", mark & LAST, instructions);
  if ((mark & LAST) == FIRST)
    for (struct block *b = blocks; b; b = b->next) b->before = b->runs;
  if ((mark & LAST) == LAST) write_blocks();
  fflush(out);
}

EXPORTED int qemu_plugin_install(Id id, const void *info, int count, char **arguments) {
  (void)info;
  for (int i = 0; i < count; ++i) {
    if (!strncmp(arguments[i], "out=", 4)) out = fopen(arguments[i] + 4, "w");
    if (!strcmp(arguments[i], "profile=on")) profile = true;
  }
  if (!out) return 1;
  qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
  qemu_plugin_register_vcpu_syscall_cb(id, called);
  return 0;
}
