import Foundation
import HubTesting
import Testing

@testable import belfry

/// Each promise of docs/reliability.md and docs/scale.md is a row of a table whose last column
/// names its tests; so is each answer to an attacker in docs/security.md.
@Suite("A promise of the pages")
struct PromiseTests {
  private static let root = URL(fileURLWithPath: #filePath).resolvingSymlinksInPath()
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

  private static func text(_ path: String) throws -> String {
    try String(contentsOf: root.appending(path: path), encoding: .utf8)
  }

  private static func files(_ folder: String, _ suffix: String) -> [String] {
    let all = FileManager.default.enumerator(atPath: root.appending(path: folder).path)
    return (all?.compactMap { $0 as? String } ?? []).filter { $0.hasSuffix(suffix) }
      .map { folder + "/" + $0 }
  }

  // MARK: What runs

  private struct SwiftTests {
    /// By the names that a row may use: `Suite/function` and `Suite`, with `Target.` before it
    /// where another target has the same; to each the tests that it means.
    var named: [String: Set<String>] = [:]
    /// What they are called.
    var sentences: [String] = []
  }

  /// Read once; a file that cannot be read is a failure of each test.
  private static let swiftTests = Result { try readSwiftTests() }

  private static func readSwiftTests() throws -> SwiftTests {
    let manifest = try text("Server/Package.swift")
    let kinds: Set<Substring> = ["struct", "extension", "class", "enum", "actor"]
    var known = SwiftTests()
    for file in files("Tests", ".swift") {
      let target = String(file.split(separator: "/")[1])
      // Targets of helpers have no tests of their own.
      guard manifest.contains(try Regex("\\.testTarget\\(\\s*name: \"\(target)\"")) else {
        continue
      }
      // By indentation: a test stands in the type that begins one level further out.
      var types: [Int: (name: String, isRun: Bool)] = [:]
      var attribute: (indent: Int, text: String)?
      var suite: String?
      for line in try text(file).split(separator: "\n") {
        let indent = line.prefix { $0 == " " }.count
        let words = line.split { " :<({`".contains($0) }
        let declared = words.drop {
          ["package", "public", "private", "final", "@Suite"].contains($0)
        }
        if words.first == "@Suite" { suite = "" }
        if let begun = suite { suite = begun + line }
        if let kind = declared.first, declared.count > 1, kinds.contains(kind) {
          let name = String(declared[declared.startIndex + 1])
          let isRun = suite.map(runs) ?? true
          types[indent] = (name, isRun && types[indent - 2]?.isRun ?? true)
          suite = nil
        }
        if words.first == "@Test" { attribute = (indent, "") }
        guard let (start, begun) = attribute else { continue }
        attribute = (start, begun + line)
        guard let name = words.firstIndex(of: "func"), let suite = types[start - 2] else {
          continue
        }
        attribute = nil
        let whole = begun + line
        guard suite.isRun, runs(whole) else { continue }
        // The name is a sentence, or has one before it.
        let quoted = whole.split(separator: whole.contains("func `") ? "`" : "\"")
        if quoted.count > 1 { known.sentences.append(String(quoted[1])) }
        let test = "\(suite.name)/\(words[name + 1])"
        for short in [suite.name, test] {
          known.named[short, default: []].insert("\(target).\(test)")
          known.named["\(target).\(short)", default: []].insert("\(target).\(test)")
        }
      }
    }
    return known
  }

  /// Whether CI runs what has these traits: it has the programs that ``ci()`` looks for, and its
  /// container's user is root.
  private static func runs(_ traits: String) -> Bool {
    let fulfilled = traits.matches(
      of:
        #/\.enabled\(\s*if: (PostgresStores\.areInstalled|PostgresServer\.isInstalled|PgBouncer\.isInstalled|geteuid\(\) == 0)[,)]/#
    )
    return !traits.contains(".disabled(")
      && traits.matches(of: #/\.enabled\(/#).count == fulfilled.count
  }

  @Test(
    "counts no test that is switched off, or that depends on more than CI has",
    arguments: [
      (#"@Test("a")"#, true), (#"@Test(.enabled(if: PgBouncer.isInstalled, "no"))"#, true),
      (#"@Suite("a",    .enabled(    if: PostgresServer.isInstalled,    "no"))"#, true),
      (#"@Test(.enabled(if: geteuid() == 0, "no"))"#, true),
      (#"@Suite("a", .disabled("later"))"#, false), (#"@Test(.disabled(if: slow))"#, false),
      (#"@Test(.enabled(if: has("zsh")))"#, false), (#"@Test(.enabled("no") { false })"#, false),
      (#"@Test(.enabled(if: PgBouncer.isInstalled && slow))"#, false),
    ])
  func traits(_ text: String, _ isRun: Bool) {
    #expect(Self.runs(text) == isRun)
  }

  @Test("is tried where CI runs: it bootstraps, runs every test, and has what they start")
  func ci() throws {
    let workflow = try Self.text(".github/workflows/ci.yml")
    let linux = try #require(workflow.firstMatch(of: #/(?s)\n  linux:\n(.*?)\n\n/#)).1
    #expect(linux.contains("script/bootstrap") && linux.contains("run: script/test"))
    #expect(linux.contains("container:"))
    #expect(
      try Self.text("script/bootstrap").contains(#/packages\+=\(.*\bpostgresql pgbouncer\b/#))
    #if os(Linux)
      guard ProcessInfo.processInfo.environment["CI"] != nil else { return }
      #expect(PostgresServer.isInstalled && PgBouncer.isInstalled)
    #endif
  }

  /// The sentences that both engines are held to.
  private static func clauses() throws -> Set<String> {
    var found: Set<String> = []
    for file in files("Tests/StoreContract", ".swift") where file.contains("+") {
      for match in try text(file).matches(of: #/\bClause\(\s*"([^"]+)"/#) {
        found.insert("HubStoreContract/" + match.1)
      }
    }
    return found
  }

  private static func scenarios() throws -> Set<String> {
    var found: Set<String> = []
    for file in files("Tests/Faults", ".py") {
      for match in try text(file).matches(of: #/(?m)^@scenario.*\ndef (\w+)\(run\):/#) {
        found.insert(String(match.1).replacing("_", with: "-"))
      }
    }
    return found
  }

  // MARK: What the pages say

  private struct Page {
    /// The rows of tables that have a column of tests, as cells.
    var promises: [[String]] = []
    /// What stands in a last column that is called Test.
    var tests: [String] = []
    /// The rows of the others by their first header.
    var others: [String: [[String]]] = [:]
    /// Sentences outside of tables, listings and headings, by their section.
    var prose: [(section: String, sentence: String)] = []

    init(_ text: String) {
      var section = ""
      var isListing = false
      var header: [String]?
      var paragraph: [String] = []
      for line in text.components(separatedBy: "\n") + [""] {
        if line.drop(while: { $0 == " " }).hasPrefix("```") { isListing.toggle() }
        let isText = !isListing && !line.isEmpty && !line.hasPrefix("|") && !line.hasPrefix("#")
        if isText {
          paragraph.append(line)
        } else if !paragraph.isEmpty {
          let sentences = paragraph.joined(separator: " ").replacing(#/ +/#, with: " ")
            .split(separator: #/[.:;] /#)
          for sentence in sentences { prose.append((section, String(sentence))) }
          paragraph = []
        }
        if !isListing, line.hasPrefix("#") {
          section = String(line.drop { $0 == "#" || $0 == " " })
        }
        guard !isListing, line.hasPrefix("| ") else {
          if !line.hasPrefix("|") { header = nil }
          continue
        }
        let cells = line.dropFirst(2).dropLast(2).components(separatedBy: " | ")
        if let header {
          if header.last == "Tests" {
            promises.append(cells)
          } else if header.last == "Test" {
            tests.append(cells[cells.count - 1])
          } else {
            others[header[0], default: []].append(cells)
          }
        } else {
          header = cells
        }
      }
    }
  }

  @Test(
    "is a row that names tests which are there and run in CI or in script/faults",
    arguments: [("docs/reliability.md", 90), ("docs/scale.md", 50)])
  func tests(path: String, least: Int) throws {
    let swift = try Self.swiftTests.get().named
    let scenarios = try Self.scenarios()
    let others = try Self.clauses().union(scenarios.map { "script/faults " + $0 })
    #expect(swift.count > 3_000 && others.count > 140)
    let page = Page(try Self.text(path))
    #expect(page.promises.count >= least)
    for cells in page.promises {
      let cell = try #require(cells.last)
      let names = cell.components(separatedBy: ", ")
      // A sentence of the contract may have a comma in it.
      let quoted = cell.matches(of: #/`([^`]+)`/#).map { String($0.1) }
      #expect(quoted.map { "`\($0)`" }.joined(separator: ", ") == cell, "\(names)")
      for name in quoted where !others.contains(name) {
        let meant = swift[name] ?? []
        #expect(!meant.isEmpty, "there is no test \(name)")
        // Of a whole suite many; of one function, or of one suite, no other's.
        let isWhole = !name.contains("/")
        let places = Set(
          meant.map { $0.split(separator: isWhole ? "/" : "\n", maxSplits: 1)[0] })
        #expect(places.count <= 1, "\(name) is more than one: say Target.\(name)")
      }
    }
  }

  @Test(
    "stands in no sentence beside the tables", arguments: ["docs/reliability.md", "docs/scale.md"])
  func prose(path: String) throws {
    // What these sections say is how to do something, what was measured, or what is not promised.
    let exempt: Set = [
      "What is not promised", "The kill test", "Two nodes in a minute", "Faults that were tried",
      "One suite on both engines", "Past one server, on paper",
    ]
    let promising =
      #/\b(?:never|always|nobody|nothing|at (?:most|least|once)|exactly|lost|loses?|no matter|must not|survives?|guaranteed?)\b/#
      .ignoresCase()
    let page = Page(try Self.text(path))
    #expect(page.prose.count > 20)
    for (section, sentence) in page.prose where !exempt.contains(section) {
      #expect(!sentence.contains(promising), "a promise without a test: \(sentence)")
    }
    #expect(Set(page.others.keys).isSubset(of: ["Scenario", "Devices"]))
  }

  /// docs/security.md tells tests by suite and by the beginning of their sentence.
  @Test("of docs/security.md names tests that are there")
  func answers() throws {
    let swift = try Self.swiftTests.get()
    let sentences = swift.sentences + (try Self.clauses())
    var clients: [String] = []
    for file in Self.files("Tests/Interop", ".py") {
      clients += try Self.text(file).matches(of: #/(?m)^def (test_\w+)/#).map { String($0.1) }
      clients.append(String(file.dropFirst("Tests/Interop/".count)))
    }
    let scenarios = try Self.scenarios()
    let cells = Page(try Self.text("docs/security.md")).tests
    #expect(cells.count > 80)
    for cell in cells {
      for name in cell.matches(of: #/`([^`]+)`/#).map({ String($0.1) }) {
        let start = String(name.prefix { $0 != "…" })
        let words = name.split(separator: " ").map(String.init)
        let isThere =
          swift.named[name] != nil || name == "HubStoreContract"
          || clients.contains { $0 == name || (start != name && $0.hasPrefix(start)) }
          || (name.hasPrefix("script/faults ") && scenarios.contains(words[1]))
          || (name.hasPrefix("script/") && words[0] != "script/faults"
            && FileManager.default.isExecutableFile(atPath: Self.root.path + "/" + words[0]))
        #expect(isThere, "there is no test \(name)")
      }
      for quote in cell.matches(of: #/"([^"]+)"/#).map({ $0.1 }) {
        let parts = quote.split(separator: "…")
        #expect(
          sentences.contains { sentence in parts.allSatisfy(sentence.contains) },
          "there is no test \(quote)")
      }
    }
  }

  /// The table of what a caller can cost names what holds each cell in brackets behind it.
  @Test("of docs/security.md says of each caller and each cost what holds it")
  func costs() throws {
    let swift = try Self.swiftTests.get().named
    let known = try Self.scenarios().map { "script/faults " + $0 } + Self.clauses()
    let benchmarks = try Self.text("docs/benchmarks.md")
    let settings = Set(Setting.all.map(\.key))
    let rows = Page(try Self.text("docs/security.md")).others["Caller"] ?? []
    #expect(rows.count == 4)
    for row in rows {
      #expect(row.count == 6, "\(row)")
      for cell in row.dropFirst() {
        var holders = 0
        for name in cell.matches(of: #/`([^`]+)`/#).map({ String($0.1) }) {
          let isHolder =
            swift[name] != nil || known.contains(name)
            || benchmarks.contains("| `\(name)`")
          holders += isHolder ? 1 : 0
          #expect(isHolder || settings.contains(name), "there is no \(name)")
        }
        #expect(holders > 0, "nothing holds: \(cell)")
      }
    }
  }

  @Test("that script/faults keeps is described: each scenario, and no other")
  func described() throws {
    let scenarios = try Self.scenarios()
    #expect(scenarios.count > 20)
    let told = Page(try Self.text("docs/reference/faults.md")).others["Scenario"] ?? []
    #expect(Set(told.map { $0[0].replacing("`", with: "") }) == scenarios)
    let tried = Page(try Self.text("docs/scale.md")).others["Scenario"] ?? []
    #expect(Set(tried.map { $0[0].replacing("`", with: "") }).isSubset(of: scenarios))
    // Who runs all of it, and what CI does.
    #expect(try Self.text("script/test").contains("script/faults --short --belfry"))
    #expect(try Self.text("script/test").contains("script/swift test --skip-build"))
    #expect(try Self.text(".ci/run").contains("script/test"))
  }
}
