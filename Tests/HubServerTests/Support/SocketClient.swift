import Foundation

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

  /// Sends a request, signed with the full key of whatever hub the path names.
  func send(_ request: RecordingTests.Request, to path: String) async throws -> Reply {
    let base = "http://127.0.0.1:\(port)"
    guard let url = URL(string: base + path) else { throw URLError(.badURL) }
    var message = URLRequest(url: url, timeoutInterval: 20)
    message.httpMethod = request.method
    for (name, value) in request.headers { message.setValue(value, forHTTPHeaderField: name) }
    message.setValue(
      request.usesListenKey
        ? TestHub.token(resource: base + "/", name: TestHub.listenName, key: TestHub.listenKey)
        : TestHub.token(resource: base + "/"), forHTTPHeaderField: "Authorization")
    if !request.body.isEmpty {
      let id = url.lastPathComponent
      message.httpBody = Data(
        request.body.replacing("\"installationId\":\"ID\"", with: "\"installationId\":\"\(id)\"")
          .utf8)
    }
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
