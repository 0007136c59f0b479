import Foundation
import HubTesting
import NotificationHubs

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// A client of a server on this machine, over a real connection.
struct SocketClient {
  struct Reply {
    let status: Int
    /// Names in lower case.
    let headers: [String: String]
    let body: String
  }

  let port: UInt16
  /// Sends by way of this server's client, over what it speaks, in place of URLSession.
  var wire: WireServer?

  var base: String { wire?.base ?? "http://127.0.0.1:\(port)" }

  /// Sends a request. Without an `Authorization` of its own it is signed with the full key for the
  /// whole namespace.
  func send(
    _ method: String, _ path: String, headers: [String: String] = [:], body: String = ""
  ) async throws -> Reply {
    if let wire {
      var headers = headers
      if headers[WireName.authorization] == nil {
        headers[WireName.authorization] = TestHub.token(resource: base + "/")
      }
      let reply = try await wire.exchange(
        method, path, headers: headers.map { ($0.key, $0.value) }, body: body)
      return Reply(status: reply.status, headers: reply.headers, body: reply.body)
    }
    guard let url = URL(string: base + path) else { throw URLError(.badURL) }
    var message = URLRequest(url: url, timeoutInterval: 20)
    message.httpMethod = method
    message.setValue(
      TestHub.token(resource: base + "/"), forHTTPHeaderField: WireName.authorization)
    for (name, value) in headers { message.setValue(value, forHTTPHeaderField: name) }
    if !body.isEmpty { message.httpBody = Data(body.utf8) }
    let (data, response) = try await URLSession.shared.data(for: message)
    guard let response = response as? HTTPURLResponse else { throw URLError(.badServerResponse) }
    let headers = response.allHeaderFields.map { name, value in
      ("\(name)".lowercased(), "\(value)")
    }
    return Reply(
      status: response.statusCode, headers: Dictionary(headers) { first, _ in first },
      body: String(decoding: data, as: UTF8.self))
  }
}
