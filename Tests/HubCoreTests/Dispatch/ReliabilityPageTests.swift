import Foundation
import Testing

@Suite("docs/reliability.md")
struct ReliabilityPageTests {
  @Test("every test that its table of politeness names is there")
  func tests() throws {
    let tests = URL(filePath: #filePath).resolvingSymlinksInPath().deletingLastPathComponent()
      .deletingLastPathComponent()
      .deletingLastPathComponent()
    let page = try String(
      contentsOf: tests.deletingLastPathComponent().appending(path: "docs/reliability.md"),
      encoding: .utf8)
    let table = page.split(separator: "## Politeness").last ?? ""
    // The second column; a name in the first is a word of the services.
    let names = table.split(separator: "\n").filter { $0.hasPrefix("| ") }.dropFirst()
      .compactMap { $0.split(separator: " | ").last }
      .flatMap { $0.matches(of: /`([^`]+)`/).map { String($0.1) } }
    #expect(names.count > 60)
    var sources = ""
    let files = FileManager.default.enumerator(at: tests, includingPropertiesForKeys: nil)
    while let file = files?.nextObject() as? URL {
      guard file.pathExtension == "swift" else { continue }
      sources += try String(contentsOf: file, encoding: .utf8)
    }
    for name in names { #expect(sources.contains("\"\(name)\""), "\(name)") }
  }
}
