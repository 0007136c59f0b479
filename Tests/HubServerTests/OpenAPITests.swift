import Foundation
import HTTPServer
import HubCore
import Testing
import Wire

@testable import HubServer
@testable import NotificationHubs

@Suite("docs/reference/openapi.yaml")
struct OpenAPITests {
  /// A method on a path, with the rights of which one is needed.
  private struct Operation: Hashable, CustomStringConvertible {
    let method: String
    let path: String
    let rights: Set<String>

    var description: String { "\(method) \(path) \(rights.sorted())" }
  }

  private static let rightNames: [AccessRights: String] = [
    .listen: "Listen", .send: "Send", .manage: "Manage",
  ]

  /// What the server's own pages add to the routes.
  private static let ownPages: Set = ["/$health", "/health/live", "/health/ready", "/metrics"]

  private static func lines() throws -> [Substring] {
    let file = URL(filePath: #filePath).resolvingSymlinksInPath().deletingLastPathComponent()
      .deletingLastPathComponent().deletingLastPathComponent()
      .appending(path: "docs/reference/openapi.yaml")
    return try String(contentsOf: file, encoding: .utf8).split(separator: "\n")
  }

  private static func declared() throws -> Set<Operation> {
    let lines = try lines()
    let paths = lines.drop { $0 != "paths:" }.prefix { $0 != "components:" }
    var found: Set<Operation> = []
    var path = ""
    var method: String?
    for line in paths {
      if let match = line.wholeMatch(of: #/  (\/\S*):/#) {
        path = String(match.1)
      } else if let match = line.wholeMatch(of: #/    (get|put|post|patch|delete|head):/#) {
        method = match.1.uppercased()
      } else if let match = line.wholeMatch(of: #/      security: (.*)/#), let word = method {
        let rights = match.1.matches(of: #/sharedAccessSignature: \[([^\]]*)\]/#).first.map {
          Set($0.1.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) })
        }
        found.insert(Operation(method: word, path: path, rights: rights ?? []))
        method = nil
      }
    }
    return found
  }

  @Test("has every operation of the server, with the right that it takes, and no other")
  func complete() throws {
    let served = Route.table.patterns.map { method, pattern, route in
      Operation(
        method: method.rawValue, path: pattern.replacing("{hub+}", with: "{hub}"),
        rights: Set(route.rights.compactMap { Self.rightNames[$0] }))
    }
    let declared = try Self.declared()
    let rest = declared.filter { !Self.ownPages.contains($0.path) }
    #expect(Set(served).subtracting(rest).map(\.description).sorted() == [])
    #expect(rest.subtracting(served).map(\.description).sorted() == [])
    #expect(Set(declared.map(\.path)).isSuperset(of: Self.ownPages))
  }

  @Test("enumerates the platforms and the formats of sends as the hub knows them")
  func platforms() throws {
    let all = try Self.lines().compactMap { line in
      line.wholeMatch(of: #/ +enum: \[([^\]]*)\]/#).map {
        $0.1.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) }
      }
    }
    let named = all.filter { $0.contains("apns") }
    #expect(named.map(Set.init) == [Set(PushPlatform.allCases.map(\.rawValue))])
    let formats = all.filter { $0.contains("apple") }
    #expect(formats.map(Set.init) == [Set(["template"] + PushPlatform.allCases.map(\.sendFormat))])
  }

  @Test("an installation has the members that the hub knows")
  func installation() throws {
    let schema = try Self.lines().drop { $0 != "    Installation:" }.dropFirst()
      .prefix { $0.hasPrefix("     ") }
    let declared = schema.compactMap { $0.firstMatch(of: #/^        (\w+):/#).map { String($0.1) } }
    var phone = Installation(
      installationID: "a", userID: "u", platform: .wns, pushChannel: .handle("h"), tags: ["t"],
      pushVariables: ["v": "w"], templates: ["t": PushTemplate(body: "b")])
    phone.secondaryTiles = ["s": SecondaryTile(pushChannel: "h")]
    guard case .object(let members) = try JSONValue.parse(phone.hubJSON) else { return }
    // A member that is new has to be filled in above.
    let hidden = ["writesSubscriptionAsText"]
    let stored = Mirror(reflecting: phone).children.compactMap(\.label)
    #expect(members.count == stored.filter { !hidden.contains($0) }.count)
    #expect(Set(members.map(\.name)).subtracting(["pushChannelExpired"]) == Set(declared))
  }
}
