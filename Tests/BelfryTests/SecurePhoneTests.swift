import Foundation
import HubTesting
import Testing

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

extension CommandLineSuite {
  /// `belfry phone --secure` beside `belfry up`: the secure tutorial.
  @Suite("Phones that are signed in") struct SecurePhoneTests {
    private static let secret = "The PIN of alice's new card is 4711."

    @Test("plain, sealed and by id: each shows, and no secret passes the push service")
    func kinds() async throws {
      let (process, up) = try await BelfryProcess.up()
      let words = ["phone", "--secure", "--json", "--control", up.emulator.control]
      let backend = ["--backend", up.backend.url]
      let alice = try BelfryProcess(words + backend + ["--user", "alice", "--count", "3"])
      let device = try Self.object(await alice.line { $0.contains("installationId") })
      let bob = try BelfryProcess(words + backend + ["--user", "bob"])
      let other = try Self.object(await bob.line { $0.contains("installationId") })

      let sent = try await BelfryProcess.run([
        "send", "--template", "message=Hello", "--tags", "username:alice", "--wait",
        "--connection", up.hub.connectionStrings.full, "--hub", up.hub.name,
      ])
      #expect(sent.code == 0, "\(sent.errors)")
      let plain = try Self.object(await alice.line { $0.contains("Hello") })
      #expect(plain.text("source") == "plain" && plain.text("place") == "alert")

      let sealed = try await Self.send(#"{"payload":"\#(Self.secret)"}"#, as: "alice", up)
      let opened = try Self.object(await alice.line { $0.contains(#""source":"opened""#) })
      #expect(opened.text("text") == Self.secret && opened.text("place") == "notification")

      // What is to be read once is never sealed into a push: its id wakes the app.
      let once = try await Self.send(
        #"{"payload":"\#(Self.secret)","readOnce":true}"#, as: "alice", up)
      let fetched = try Self.object(await alice.line { $0.contains(#""source":"fetched""#) })
      #expect(fetched.text("text") == Self.secret && fetched.text("place") == "notification")
      #expect(try await alice.exitCode() == 0)

      for id in [sealed, once] {
        #expect(try await Self.call("GET", "/api/notifications/\(id)", as: "bob", up).status == 404)
      }
      for path in [
        "/v1/requests", "/v1/devices/\(device.text("deviceId"))/notifications",
        "/v1/devices/\(other.text("deviceId"))/notifications",
      ] {
        let url = try #require(URL(string: up.emulator.control + path))
        let (data, _) = try await URLSession.shared.data(from: url)
        let text = String(decoding: data, as: UTF8.self)
        #expect(!text.contains("4711") && !text.contains("alice's"), "\(path)")
        for id in [sealed, once] where path.contains(device.text("deviceId")) {
          #expect(text.contains(id), "the push carries the id \(id)")
        }
        if path.contains(other.text("deviceId")) { #expect(!text.contains("secureId")) }
      }
      #expect(try await process.end() == 0)
      bob.signal(SIGTERM)
    }

    @Test("a wrong password, an absent backend and words that do not fit are told plainly")
    func refusals() async throws {
      let (process, up) = try await BelfryProcess.up()
      let words = [
        "phone", "--secure", "--user", "alice", "--control", up.emulator.control,
      ]
      let wrong = try await BelfryProcess.run(
        words + ["--backend", up.backend.url, "--password", "bob"])
      #expect(wrong.code == 1 && wrong.errors.contains("not signed in"), "\(wrong.errors)")
      let absent = try await BelfryProcess.run(words + ["--backend", "http://127.0.0.1:1"])
      #expect(absent.code == 69 && absent.errors.contains("does not answer"), "\(absent.errors)")
      #expect(try await BelfryProcess.run(["phone", "--secure"]).code == 64)
      #expect(try await BelfryProcess.run(words + ["--platform", "fcm"]).code == 64)
      #expect(try await process.end() == 0)
    }

    private static func object(_ line: String) throws -> JSONObject {
      JSONObject(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
    }

    /// - Returns: The message's id.
    private static func send(_ body: String, as user: String, _ up: UpLine) async throws -> String {
      let reply = try await call("POST", "/api/notifications", as: user, up, body)
      #expect(reply.status == 200)
      return try object(reply.body).text("Id")
    }

    private static func call(
      _ method: String, _ path: String, as user: String, _ up: UpLine, _ body: String? = nil
    ) async throws -> (status: Int, body: String) {
      var request = URLRequest(url: try #require(URL(string: up.backend.url + path)))
      request.httpMethod = method
      request.httpBody = body.map { Data($0.utf8) }
      let login = Data("\(user):\(user)".utf8).base64EncodedString()
      request.setValue("Basic \(login)", forHTTPHeaderField: "Authorization")
      request.setValue("application/json", forHTTPHeaderField: "Content-Type")
      let (data, response) = try await URLSession.shared.data(for: request)
      let status = (response as? HTTPURLResponse)?.statusCode ?? 0
      return (status, String(decoding: data, as: UTF8.self))
    }
  }
}
