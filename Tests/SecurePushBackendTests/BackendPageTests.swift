import Foundation
import Testing

@testable import SecurePushBackend

@Suite("The table of requests in docs/backend.md")
struct BackendPageTests {
  @Test("it has every request of the backend, and no other")
  func requests() async throws {
    let page = URL(filePath: #filePath).resolvingSymlinksInPath().deletingLastPathComponent()
      .deletingLastPathComponent().deletingLastPathComponent().appending(path: "docs/backend.md")
    let lines = try String(contentsOf: page, encoding: .utf8).split(separator: "\n")
      .drop { $0 != "## Every request" }.dropFirst().prefix { !$0.hasPrefix("## ") }
    var told: Set<String> = []
    for line in lines {
      for request in line.matches(of: #/^\| `([A-Z, ]+) (\/[^`]*)`/#) {
        for method in request.1.split(separator: ", ") { told.insert("\(method) \(request.2)") }
      }
    }
    try await BackendWorld.run { world in
      let served = Set(world.backend.requests)
      #expect(served.count == 14)
      #expect(told.subtracting(served).sorted() == [], "nothing that the backend serves")
      #expect(served.subtracting(told).sorted() == [], "not in the table")
    }
  }
}
