import Foundation
import HubTesting
import NotificationHubs

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// The emulator's control API as a test uses it.
struct Control: Sendable {
  let base: String

  func call(_ method: String, _ path: String, _ body: String? = nil) async throws -> JSONObject {
    guard let url = URL(string: base + path) else { throw ProcessFault("no URL: \(path)") }
    var request = URLRequest(url: url)
    request.httpMethod = method
    request.httpBody = body.map { Data($0.utf8) }
    if body != nil { request.setValue("application/json", forHTTPHeaderField: "Content-Type") }
    let (data, response) = try await URLSession.shared.data(for: request)
    let status = (response as? HTTPURLResponse)?.statusCode ?? 0
    guard (200..<300).contains(status) else {
      throw ProcessFault("\(method) \(path): \(status) \(String(decoding: data, as: UTF8.self))")
    }
    return data.isEmpty
      ? JSONObject([:]) : JSONObject(try JSONSerialization.jsonObject(with: data) as? [String: Any])
  }

  /// Makes phones that are online whether or not anybody reads their events.
  func phones(_ count: Int) async throws -> [(id: String, token: String)] {
    let apps = try await call("GET", "/v1/apps")
    let app = apps.list("apps").first?.text("appId") ?? ""
    let made = try await call("POST", "/v1/devices", #"{"appId":"\#(app)","count":\#(count)}"#)
    return made.list("devices").map { device in
      (device.text("deviceId"), device.object("handle").text("token"))
    }
  }

  /// The ids of the notifications that a phone has got, in order.
  func delivered(to device: String) async throws -> [String] {
    try await call("GET", "/v1/devices/\(device)/notifications").list("notifications")
      .map { $0.text("id") }
  }
}

/// Just enough of JSON for asking a reply.
struct JSONObject {
  private let members: [String: Any]
  init(_ members: [String: Any]?) { self.members = members ?? [:] }
  func text(_ name: String) -> String { members[name] as? String ?? "" }
  func number(_ name: String) -> Int { members[name] as? Int ?? 0 }
  func object(_ name: String) -> JSONObject { JSONObject(members[name] as? [String: Any]) }
  func list(_ name: String) -> [JSONObject] {
    (members[name] as? [[String: Any]] ?? []).map { JSONObject($0) }
  }
}

/// A directory that goes with the value.
final class Scratch: Sendable {
  private let directory: TemporaryDirectory
  var path: String { directory.url.path }

  init() throws { directory = try TemporaryDirectory() }

  deinit { directory.remove() }

  /// Writes a file and returns its path.
  func file(_ name: String, _ text: String) throws -> String {
    let file = path + "/" + name
    try Data(text.utf8).write(to: URL(fileURLWithPath: file))
    return file
  }
}

/// Runs work for each element, several at a time.
func concurrently<Element: Sendable>(
  _ elements: [Element], width: Int = 32, _ work: @escaping @Sendable (Element) async throws -> Void
) async throws {
  try await withThrowingTaskGroup(of: Void.self) { group in
    var rest = elements[...]
    for element in rest.prefix(width) { group.addTask { try await work(element) } }
    rest = rest.dropFirst(width)
    while try await group.next() != nil {
      if let element = rest.popFirst() { group.addTask { try await work(element) } }
    }
  }
}
