import Foundation
import Testing

@testable import belfry

/// The scripts are run by the shells that this machine has.
@Suite("Completions")
struct CompletionTests {
  private static let cases: [(words: [String], wanted: [String])] = [
    (["hu"], ["hub"]),
    (["hub", "sh"], ["show"]),
    (["phone", "--platform", "w"], ["web", "wns"]),
    (["installation", "list", "--platform", "fc"], ["fcmv1"]),
    (["serve", "--log-level", ""], ["debug", "info", "warning", "error"]),
    (["credential", "set", "ad"], ["adm"]),
    (["send", "--dry"], ["--dry-run"]),
    (["backend", "user", "re"], ["revoke"]),
  ]

  private static func has(_ shell: String) -> Bool { path(shell) != nil }

  private static func path(_ shell: String) -> String? {
    ["/bin/", "/usr/bin/", "/opt/homebrew/bin/"].map { $0 + shell }
      .first { FileManager.default.isExecutableFile(atPath: $0) }
  }

  /// Writes the completions out, and runs a script with their file's name in place of `FILE`.
  private func run(_ shell: String, _ script: String) throws -> Set<String> {
    let scratch = try Scratch()
    let kind = try #require(CompletionScript.Shell(rawValue: shell))
    let file = try scratch.file(
      "completions", CompletionScript(CommandTable.all.map { $0.help }).text(for: kind))
    let process = Process()
    process.executableURL = URL(fileURLWithPath: try #require(Self.path(shell)))
    process.arguments = ["-c", script.replacing("FILE", with: file)]
    process.currentDirectoryURL = URL(fileURLWithPath: scratch.path)
    let output = Pipe()
    process.standardOutput = output
    try process.run()
    let data = output.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    return Set(
      String(decoding: data, as: UTF8.self).split(whereSeparator: \.isNewline).map(String.init))
  }

  @Test("complete commands, options and known values in bash", .enabled(if: has("bash")))
  func bash() throws {
    for (words, wanted) in Self.cases {
      let line = words.map { "'\($0)'" }.joined(separator: " ")
      let found = try run(
        "bash",
        "complete() { :; }; . FILE; COMP_WORDS=(belfry \(line)); COMP_CWORD=\(words.count); "
          + #"_belfry; printf '%s\n' "${COMPREPLY[@]}""#)
      #expect(found == Set(wanted), "\(words)")
    }
  }

  @Test("complete commands, options and known values in zsh", .enabled(if: has("zsh")))
  func zsh() throws {
    // The shell's own functions choose among what they are given.
    let given = """
      compdef() { :; }; compadd() { shift; print -l -- "$@"; }
      _files() { :; }; _describe() { print -l -- "${(@)${(@P)2}%%:*}"; }
      . FILE
      """
    for (words, wanted) in Self.cases {
      let line = words.map { "'\($0)'" }.joined(separator: " ")
      let found = try run(
        "zsh", "\(given)\nwords=(belfry \(line)); CURRENT=\(words.count + 1); _belfry")
      #expect(found.isSuperset(of: wanted), "\(words): \(found)")
    }
  }

  @Test("complete commands, options and known values in fish", .enabled(if: has("fish")))
  func fish() throws {
    for (words, wanted) in Self.cases {
      let found = try run(
        "fish",
        ". FILE; complete -C 'belfry \(words.joined(separator: " "))' | string split -f1 \\t")
      #expect(found == Set(wanted), "\(words)")
    }
  }
}
