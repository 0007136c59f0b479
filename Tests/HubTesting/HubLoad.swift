import Foundation
import NotificationHubs
import Synchronization

/// Requests to a running hub, as many as it can take; it may go away under them.
package final class HubLoad: Sendable {
  private let port: UInt16
  private let hub: String
  private let token: String

  convenience init(_ line: UpLine) throws {
    let connection = try ConnectionString(line.hub.connectionStrings.full)
    try self.init(
      url: line.hub.url, hub: line.hub.name, keyName: connection.keyName, key: connection.key)
  }

  package init(url: String, hub: String, keyName: String, key: String) throws {
    guard let port = URL(string: url)?.port else { throw ProcessFault("no port in \(url)") }
    self.port = UInt16(clamping: port)
    self.hub = hub
    token =
      SharedAccessSignature(
        resource: "\(url)/\(hub)", keyName: keyName, key: key,
        expiresAt: Date().addingTimeInterval(7_200)
      ).text
  }

  /// Sends one request on a connection of its own.
  package func reply(to request: String) async throws -> RawReply {
    let port = port
    return try await onThread { try RawClient(port: port).exchange(request) }
  }

  /// Sends the requests 0 to `count - 1`, on several connections, until the hub goes away.
  /// - Returns: Those that were answered with success.
  func acknowledged(
    _ count: Int, width: Int, request: @escaping @Sendable (Int) -> String
  ) async -> [Int] {
    let next = Counter()
    return await withTaskGroup(of: [Int].self) { group in
      for _ in 0..<width {
        group.addTask { [port] in
          (try? await onThread {
            var done: [Int] = []
            guard let client = try? RawClient(port: port) else { return done }
            while case let number = next.take(), number < count {
              guard let reply = try? client.exchange(request(number)) else { break }
              if (200..<300).contains(reply.status) { done.append(number) }
            }
            return done
          }) ?? []
        }
      }
      return await group.reduce(into: []) { $0 += $1 }.sorted()
    }
  }

  private final class Counter: Sendable {
    private let value = Mutex(0)
    func take() -> Int {
      value.withLock {
        $0 += 1
        return $0 - 1
      }
    }
  }

  package func put(_ id: String, handle: String, tags: [String]) -> String {
    let tags = tags.map { "\"\($0)\"" }.joined(separator: ",")
    return request(
      "PUT", "installations/\(id)",
      body:
        #"{"installationId":"\#(id)","platform":"apns","pushChannel":"\#(handle)","tags":[\#(tags)]}"#
    )
  }

  package func get(_ id: String) -> String { request("GET", "installations/\(id)") }

  package func send(_ payload: String, to tag: String) -> String {
    request(
      "POST", "messages/", body: payload,
      headers: ["ServiceBusNotification-Format: apple", "ServiceBusNotification-Tags: \(tag)"])
  }

  /// A token that no device has.
  static func handle(_ round: Int, _ number: Int) -> String {
    let digits = String(round * 1_000_000 + number, radix: 16)
    return String(repeating: "f", count: 64 - digits.count) + digits
  }

  private func request(
    _ method: String, _ path: String, body: String = "", headers: [String] = []
  ) -> String {
    ([
      "\(method) /\(hub)/\(path)?api-version=2020-06 HTTP/1.1", "Host: 127.0.0.1:\(port)",
      "Authorization: \(token)", "Content-Type: application/json",
      "Content-Length: \(body.utf8.count)",
    ] + headers).joined(separator: "\r\n") + "\r\n\r\n" + body
  }
}
