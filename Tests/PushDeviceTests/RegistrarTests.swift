import Foundation
import NotificationHubs
import PushDevice
import Testing

@Suite("The registrars' requests")
struct RegistrarTests {
  /// Answers requests in turn, and keeps them.
  final class Server: HTTPTransport {
    private let state: Locked<(replies: [TransportReply], requests: [TransportRequest])>
    init(_ statuses: Int..., headers: [String: String] = [:], body: String = "") {
      let replies = statuses.map {
        TransportReply(status: $0, headers: headers, body: Data(body.utf8))
      }
      state = Locked((replies, []))
    }
    var requests: [TransportRequest] { state.withLock { $0.requests } }

    func send(_ request: TransportRequest) async throws -> TransportReply {
      try state.withLock { state in
        state.requests.append(request)
        guard !state.replies.isEmpty else { throw URLError(.notConnectedToInternet) }
        return state.replies.removeFirst()
      }
    }
  }

  private let phone = Installation(
    installationID: "phone 1", userID: "anna", platform: .apns, pushChannel: .apns(.token(1)))

  private func backend(_ server: Server) -> BackendRegistrar {
    BackendRegistrar(backend: URL(string: "https://push.example.com")!, transport: server) {
      "\($0)-\($1 == nil ? "old" : "new")"
    }
  }

  @Test("the backend gets the installation with the user's bearer token")
  func backendSave() async throws {
    let server = Server(200, 200)
    try await backend(server).save(phone)
    try await backend(server).delete(installation: "phone 1", of: "bob")
    let address = "https://push.example.com/api/installations/phone%201"
    #expect(server.requests.map(\.url.absoluteString) == [address, address])
    #expect(server.requests.map(\.method) == ["PUT", "DELETE"])
    #expect(
      server.requests.map { $0.headers["Authorization"] } == ["Bearer anna-old", "Bearer bob-old"])
    let sent = try Installation(jsonData: try #require(server.requests.first?.body))
    #expect(sent == phone)
  }

  @Test("a refused token is renewed once")
  func renewedToken() async throws {
    let server = Server(401, 200)
    try await backend(server).save(phone)
    #expect(server.requests.last?.headers["Authorization"] == "Bearer anna-new")
    let refusing = Server(401, 401, 200)
    await #expect { try await backend(refusing).save(phone) } throws: {
      ($0 as? RegistrarError)?.kind == .unauthorized
    }
    #expect(refusing.requests.count == 2)
  }

  @Test("a device that is gone already is no error")
  func absent() async throws {
    try await backend(Server(404)).delete(installation: "phone", of: "anna")
    try await hub(Server(404)).delete(installation: "phone", of: nil)
  }

  @Test("an answer has its kind, explanation and delay")
  func kinds() async throws {
    let kinds: [(Int, RegistrarError.Kind)] = [
      (400, .rejected), (403, .forbidden), (404, .notFound), (409, .rejected), (410, .notFound),
      (429, .throttled), (500, .unreachable), (503, .unreachable), (302, .unreachable),
      (307, .unreachable),
    ]
    for (status, kind) in kinds {
      let server = Server(status, body: #"{"message":"why"}"#)
      await #expect(throws: RegistrarError(kind, "why")) { try await backend(server).save(phone) }
      await #expect("\(status)") { try await hub(Server(status)).save(phone) } throws: {
        ($0 as? RegistrarError)?.kind == kind
      }
    }
    for status in [403, 429, 503] {
      for headers in [
        ["Retry-After": "30"],
        [
          "Date": "Wed, 21 Oct 2037 07:27:30 GMT", "Retry-After": "Wed, 21 Oct 2037 07:28:00 GMT",
        ],
      ] {
        for registrar in [
          backend(Server(status, headers: headers)), try hub(Server(status, headers: headers)),
        ] as [any InstallationRegistrar] {
          await #expect { try await registrar.save(phone) } throws: {
            ($0 as? RegistrarError)?.kind == .throttled
              && ($0 as? RegistrarError)?.retryAfter == .seconds(30)
          }
        }
      }
    }
    await #expect { try await hub(Server()).save(phone) } throws: {
      ($0 as? RegistrarError)?.kind == .unreachable
    }
    await #expect { try await backend(Server()).save(phone) } throws: {
      ($0 as? RegistrarError)?.kind == .unreachable
    }
  }

  private func hub(_ server: Server) throws -> HubRegistrar {
    HubRegistrar(
      connectionString: try ConnectionString(
        "Endpoint=sb://contoso.servicebus.windows.net/;SharedAccessKeyName=Listen;"
          + "SharedAccessKey=a2V5"), hub: "news", transport: server)
  }

  @Test("the hub is asked once for each attempt, with a fresh token once")
  func hubAttempts() async throws {
    let minted = Locked(0)
    func registrar(_ server: Server) -> HubRegistrar {
      let endpoint = ServiceEndpoint(namespace: "contoso")
      return HubRegistrar(
        endpoint: endpoint, hub: "news",
        tokens: TokenProvider {
          let number = minted.withLock {
            $0 += 1
            return $0
          }
          return SharedAccessSignature(
            resource: endpoint.resource(hub: "news"), keyName: "Listen", key: "key\(number)",
            expiresAt: Date(timeIntervalSinceNow: 600))
        }, transport: server)
    }
    let server = Server(500, 200)
    await #expect(throws: RegistrarError.self) { try await registrar(server).save(phone) }
    #expect(server.requests.count == 1)
    let refusing = Server(401, 200)
    try await registrar(refusing).save(phone)
    #expect(Set(refusing.requests.map { $0.headers["Authorization"] }).count == 2)
    let adamant = Server(401, 401, 200)
    await #expect { try await registrar(adamant).save(phone) } throws: {
      ($0 as? RegistrarError)?.kind == .unauthorized
    }
    #expect(adamant.requests.count == 2)
  }

  @Test("no error has a token, and none the handle of the device")
  func secrecy() async throws {
    for status in [400, 401, 403, 500] {
      for registrar in [backend(Server(status, status)), try hub(Server(status, status))]
        as [any InstallationRegistrar]
      {
        let error = await #expect(throws: RegistrarError.self) {
          try await registrar.save(phone)
        }
        let text = error.map { "\($0)" } ?? ""
        #expect(!text.contains(phone.pushChannel.handle))
        #expect(!text.contains("Bearer") && !text.contains("sig="))
      }
    }
  }
  @Test("an error of the token's source says how the registration continues")
  func tokenErrors() async throws {
    struct SignInNeeded: RegistrarErrorConvertible {
      var registrarError: RegistrarError { RegistrarError(.unauthorized, "sign in") }
    }
    let expected = RegistrarError(.unauthorized, "sign in")
    let endpoint = ServiceEndpoint(namespace: "contoso")
    let hub = HubRegistrar(
      endpoint: endpoint, hub: "news", tokens: TokenProvider { throw SignInNeeded() },
      transport: Server())
    await #expect(throws: expected) { try await hub.save(phone) }
    let backend = BackendRegistrar(
      backend: URL(string: "https://push.example.com")!, transport: Server()
    ) { _, _ in throw SignInNeeded() }
    await #expect(throws: expected) { try await backend.save(phone) }
  }

  @Test("an id that would change the path of the request is not sent", arguments: ["..", ".", ""])
  func pathSegments(id: String) async throws {
    let server = Server(200)
    await #expect {
      try await backend(server).delete(installation: id, of: "anna")
    } throws: {
      ($0 as? RegistrarError)?.kind == .rejected
    }
    #expect(server.requests.isEmpty)
  }

  @Test("of a long explanation the beginning is kept")
  func longExplanation() async throws {
    let server = Server(400, body: #"{"message":"\#(String(repeating: "x", count: 5_000_000))"}"#)
    let error = await #expect(throws: RegistrarError.self) { try await backend(server).save(phone) }
    #expect(error?.detail.count == 500)
  }
  @Test("an error's text names the kind once, and is the one that alerts show")
  func texts() async throws {
    for registrar in [backend(Server()), try hub(Server())] as [any InstallationRegistrar] {
      let error = await #expect(throws: RegistrarError.self) { try await registrar.save(phone) }
      let text = error?.description ?? ""
      #expect(text.components(separatedBy: "unreachable").count == 2, "\(text)")
      #expect(!text.contains("UserInfo"), "\(text)")
      #expect(error?.localizedDescription == text)
    }
    #expect(StorageError.locked.localizedDescription == StorageError.locked.description)
  }
}
