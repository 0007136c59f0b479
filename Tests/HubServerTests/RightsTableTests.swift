import Foundation
import HTTPServer
import HubCore
import HubTesting
import Testing

@testable import HubServer
@testable import NotificationHubs

@Suite("The table of rights in docs/protocol/sas.md, section 5")
struct RightsTableTests {
  private struct Operation: Hashable {
    let method: String
    /// Behind the hub's name, or the whole.
    let path: String

    var text: String { "\(method) \(path)" }
  }

  /// The least rights that the table gives each operation; none where an address opens itself.
  private static func table() throws -> [Operation: Set<AccessRights>] {
    var found: [Operation: Set<AccessRights>] = [:]
    for cells in try DocPage("docs/protocol/sas.md").section("5. Rights") where cells.count >= 5 {
      let least: AccessRights? =
        cells[2] == "x"
        ? .listen : cells[3] == "x" ? .send : cells[4].hasPrefix("x") ? .manage : nil
      for (method, path) in DocPage.requests(in: cells[1]) {
        let operation = Operation(method: method, path: path)
        found[operation, default: []].formUnion(least.map { [$0] } ?? [])
      }
    }
    return found
  }

  @Test("it has every operation of the server with the right that it takes, and no other")
  func complete() throws {
    var served: [Operation: Set<AccessRights>] = [:]
    for (method, pattern, route) in Route.table.patterns {
      var path = pattern
      for hub in ["/{hub+}", "/{hub}"] where path.hasPrefix(hub + "/") {
        path.removeFirst(hub.count)
      }
      let operation = Operation(method: method.rawValue, path: path)
      served[operation, default: []].formUnion(route.rights)
    }
    let table = try Self.table()
    func texts(_ operations: Set<Operation>) -> [String] { operations.map(\.text).sorted() }
    #expect(texts(Set(served.keys).subtracting(table.keys)) == [], "not in the table")
    #expect(texts(Set(table.keys).subtracting(served.keys)) == [], "no operation of the server")
    for (operation, rights) in served {
      #expect(table[operation] == rights, "\(operation.text)")
    }
  }

  @Test("the portal asks only for what is an operation")
  func portal() throws {
    let folder = URL(filePath: #filePath).resolvingSymlinksInPath().deletingLastPathComponent()
      .appending(path: "../../Sources/HubServer/Portal/Files").standardizedFileURL
    let served = Set(
      Route.table.patterns.map { _, pattern, _ in
        pattern.replacing("{hub+}", with: "{id}").replacing("{hub}", with: "{id}")
      })
    var compared = 0
    for name in try FileManager.default.subpathsOfDirectory(atPath: folder.path)
    where name.hasSuffix(".js") {
      let script = try String(contentsOf: folder.appending(path: name), encoding: .utf8)
      for call in script.matches(of: #/api\.at\(([^()]+)\)/#) {
        // A segment is a text, a choice of texts, or a value.
        var paths = [""]
        for segment in call.1.split(separator: ", ") {
          let texts = segment.matches(of: #/'([^']+)'/#).map { "/" + $0.1 }
          paths = paths.flatMap { path in
            (texts.isEmpty ? ["/{id}"] : texts).map { path + $0 }
          }
        }
        for path in paths { #expect(served.contains(path), "\(path) in \(name)") }
        compared += 1
      }
    }
    #expect(compared >= 40)
  }
}
