import Foundation
import HTTPServer
import HubServer
import NotificationHubs
import Testing
import Wire

/// What the portal's scripts say, held against what it speaks of. That they work is for a browser
/// to show.
@Suite("The portal's files")
struct PortalFilesTests {
  private static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    .appending(path: "../../Sources/HubServer/Portal/Files").standardizedFileURL

  private static func text(_ name: String) throws -> String {
    try String(contentsOf: folder.appending(path: name), encoding: .utf8)
  }

  private static var names: [String] {
    get throws {
      try FileManager.default.subpathsOfDirectory(atPath: folder.path).filter { $0.contains(".") }
    }
  }

  /// The `{holes}` of each text of a language, by its key.
  private static func texts(_ language: String) throws -> [String: Set<String>] {
    var found: [String: Set<String>] = [:]
    for line in try text("texts/\(language).js").split(separator: "\n") {
      guard let match = line.wholeMatch(of: #/  '([^']+)': (.*),/#) else { continue }
      let holes = match.2.matches(of: /\{(\w+)\}/).map { String($0.1) }
      #expect(found.updateValue(Set(holes), forKey: String(match.1)) == nil, "\(match.1) twice")
    }
    return found
  }

  @Test("every language has every text, with the same values in it", arguments: ["fr", "zh"])
  func languages(_ language: String) throws {
    let english = try Self.texts("en")
    let other = try Self.texts(language)
    #expect(english.count > 200)
    #expect(Set(english.keys).symmetricDifference(other.keys).sorted() == [])
    for (key, holes) in english { #expect(other[key] == holes, "\(key)") }
  }

  @Test("every text that a page names is there")
  func keys() throws {
    let known = try Self.texts("en")
    var asked = 0
    for name in try Self.names where name.hasSuffix(".js") && !name.hasPrefix("texts/") {
      for line in try Self.text(name).split(separator: "\n") where !line.hasPrefix("//") {
        for match in line.matches(of: /\bt\('([a-z]+\.[A-Za-z.]+)'/) {
          asked += 1
          #expect(known[String(match.1)] != nil, "\(match.1) in \(name)")
        }
      }
    }
    #expect(asked > 200)
  }

  private static func sheet() async throws -> (reply: HTTPResponse, json: JSONValue) {
    let reply = await Portal(next: Nobody()).respond(
      to: HTTPRequest(
        method: .get, target: HTTPTarget("/$portal/platforms.json"), headers: [:], body: [],
        remoteAddress: "::1"))
    return (reply, try JSONValue.parse(reply.bytes))
  }

  @Test("the portal gets the sheet of platforms from the server", arguments: PushPlatform.allCases)
  func platforms(_ platform: PushPlatform) async throws {
    let (reply, json) = try await Self.sheet()
    #expect(reply.headers["Content-Type"] == "application/json" && reply.headers["ETag"] != nil)
    let row = try #require(json[platform.rawValue])
    #expect(row.text("format") == platform.sendFormat)
    #expect(row.text("form") == platform.traits.form.rawValue)
    #expect(row.count("limit") == platform.traits.payloadLimit)
    #expect(row.flag("isRetired") == (platform.traits.successor != nil))
    #expect(row.text("element") == "\(platform.telemetryPrefix)Credential")
    // The portal begins a payload with the first one.
    #expect(!row.items("samples").isEmpty)
    let texts = try Self.texts("en")
    for sample in row.items("samples") {
      #expect(texts[sample.text("name") ?? ""] != nil, "\(sample)")
      if platform.traits.form != .xml {
        #expect(throws: Never.self) { try JSONValue.parse(Array((sample.text("body") ?? "").utf8)) }
      }
    }
    // One of several forms is chosen by its name.
    let forms = row.items("forms")
    for form in forms where forms.count > 1 {
      #expect(texts["credentials.form.\(form.text("key") ?? "")"] != nil, "\(form)")
    }
    #expect(forms.isEmpty == (platform.traits.phone == nil))
    #expect((row["phone"] == nil) == (platform.traits.successor != nil))
  }

  @Test("the first form of a credential is the one that its vendor prefers")
  func forms() async throws {
    let forms = try await Self.sheet().json["wns"]?.items("forms").map { $0.text("key") }
    #expect(forms == ["wnsEntra", "wnsSid"])
  }

  @Test(
    "the headers that the portal suggests go to the push service", arguments: PushPlatform.allCases)
  func headers(_ platform: PushPlatform) throws {
    let script = try Self.text("payloads.js")
    let table = try #require(
      script.firstMatch(of: #/export const headerNames = \{\n([\s\S]*?)\n\};/#)?.1)
    let entry = try Regex("(?m)^  \(platform.sendFormat): \\{([^}]*)\\}")
    guard let match = String(table).firstMatch(of: entry), let names = match[1].substring else {
      #expect(platform.traits.headerPrefix == nil && platform.traits.headers.isEmpty)
      return
    }
    for name in names.matches(of: #/'?([\w-]+)'?: \[/#).map({ $0.1.lowercased() }) {
      #expect(
        platform.traits.headers.contains(name)
          || platform.traits.headerPrefix.map(name.hasPrefix) == true, "\(name)")
    }
  }

  @Test("the portal's order of a hub's members has all credentials of the original")
  func members() throws {
    let script = try Self.text("hubs.js")
    let table = try #require(script.firstMatch(of: #/const original = \[([^\]]*)\]/#)?.1)
    let order = table.matches(of: #/'(\w+)Credential'/#).map { String($0.1) }
    let original = PushPlatform.allCases.filter(\.traits.isOriginal).map(\.telemetryPrefix)
    #expect(Set(order) == Set(original))
    var hub = HubDescription(name: "hub")
    for platform in PushPlatform.allCases { hub.credentials[platform] = ["A": "b"] }
    let written = hub.requestXML.matches(of: #/<(\w+)Credential>/#).map { String($0.1) }
    #expect(written.filter(original.contains) == order)
  }

  @Test("nothing of a page is read as HTML, run from a text, or fetched from elsewhere")
  func harmless() throws {
    for name in try Self.names where !name.hasSuffix(".svg") {
      let text = try Self.text(name)
      for word in [
        "innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "DOMParser(", "eval(",
        "Function(", "srcdoc", "style=", "onclick=", "javascript:", "//cdn", "@import",
      ] {
        #expect(!text.contains(word), "\(word) in \(name)")
      }
      for match in text.matches(of: /https?:\/\/[\w.]+/) {
        // Names of forms, and what a credential says of the hub's own requests.
        let harmless = [
          "http://www.w3.org", "http://schemas.microsoft.com", "https://api.push.apple.com",
          "https://api.development.push.apple.com",
        ]
        #expect(harmless.contains(String(match.0)), "\(match.0) in \(name)")
      }
    }
  }

  private struct Nobody: HTTPHandler {
    func respond(to request: HTTPRequest) async -> HTTPResponse { HTTPResponse(.notFound) }
  }

  @Test(
    "every page is loaded with less than 150 kB, in every language",
    arguments: try PortalFilesTests.names.filter { $0.hasPrefix("pages/") })
  func size(page: String) async throws {
    // What portal.html, app.js and the page name, and all that is loaded with some pages only.
    var wanted: Set<String> = [
      "portal.html", "portal.css", "settings.css", "phones.css", "platforms.json",
    ]
    var open = ["app.js", page]
    while let name = open.popLast() {
      guard wanted.insert(name).inserted else { continue }
      for match in try Self.text(name).matches(of: /from '(\.\.?)\/([\w\/]+\.js)'/) {
        let isBeside = match.1 == "." && name.hasPrefix("pages/")
        open.append((isBeside ? "pages/" : "") + match.2)
      }
    }
    let portal = Portal(next: Nobody())
    for language in ["en", "fr", "zh"] {
      var all = 0
      for name in wanted.union(["texts/\(language).js"]) {
        let reply = await portal.respond(
          to: HTTPRequest(
            method: .get, target: HTTPTarget("/$portal/" + name),
            headers: ["Accept-Encoding": "gzip, deflate, br"], body: [], remoteAddress: "::1"))
        #expect(!reply.bytes.isEmpty, "\(name)")
        all += reply.bytes.count
      }
      #expect(all < 150_000, "\(all) bytes in \(language): \(wanted.sorted())")
    }
  }
}
