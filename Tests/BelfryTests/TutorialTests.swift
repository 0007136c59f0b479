import Foundation
import HubTesting
import NotificationHubs
import Testing

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

extension CommandLineSuite {
  @Suite("The tutorial, from the command line")
  struct TutorialTests {
    @Test("belfry demo --exit ends with 0 once the phone has shown the push")
    func demo() async throws {
      let (code, output, errors) = try await BelfryProcess.run(["demo", "--exit"])
      #expect(code == 0, "\(errors)")
      #expect(output.contains("│ Hello from Postman!"))
      #expect(output.contains("Completed: Success 1"))
      #expect(output.contains("curl -i -X PUT"))
    }

    @Test("belfry demo stays up after the push and ends with 0 on SIGTERM")
    func demoStays() async throws {
      let process = try BelfryProcess(["demo"])
      _ = try await process.line { $0.contains("Everything stays up until Ctrl-C") }
      #expect(process.isRunning)
      #expect(try await process.end() == 0, "\(process.errors)")
    }

    /// One request as curl would send it.
    private func request(
      _ method: String, _ url: String, _ headers: [String: String], _ body: String? = nil
    ) async throws -> (status: Int, headers: [AnyHashable: Any], body: String) {
      let url = try #require(URL(string: url))
      var request = URLRequest(url: url)
      request.httpMethod = method
      request.httpBody = body.map { Data($0.utf8) }
      for (name, value) in headers { request.setValue(value, forHTTPHeaderField: name) }
      let (data, response) = try await URLSession.shared.data(for: request)
      let http = try #require(response as? HTTPURLResponse)
      return (http.statusCode, http.allHeaderFields, String(decoding: data, as: UTF8.self))
    }

    @Test("the tutorial's requests, sent to belfry up, put the message on the phone")
    func tutorialRequests() async throws {
      let (process, up) = try await BelfryProcess.up()
      let control = Control(base: up.emulator.control)
      let phone = try #require(try await control.phones(2).first)
      #expect(!up.hub.url.hasSuffix("/") && !up.hub.url.contains(up.hub.name))
      func token(_ connection: String) async throws -> String {
        let (code, output, errors) = try await BelfryProcess.run([
          "sas", "--connection", connection, "--hub", up.hub.name,
        ])
        #expect(code == 0, "\(errors)")
        return output.trimmingCharacters(in: .newlines)
      }
      let listen = try await token(up.hub.connectionStrings.listen)
      let full = try await token(up.hub.connectionStrings.full)

      let installation = "\(up.hub.url)/\(up.hub.name)/installations/phone-1?api-version=2015-01"
      let document = #"""
        {"installationId":"phone-1","platform":"apns","pushChannel":"\#(phone.token)","tags":["12345"],
         "templates":{"genericTemplate":{"body":"{\"aps\":{\"alert\":\"$(message)\"}}"}}}
        """#
      let put = try await request("PUT", installation, ["Authorization": listen], document)
      #expect(put.status == 200 && put.body.isEmpty)
      let get = try await request("GET", installation, ["Authorization": listen])
      #expect(get.status == 200)
      #expect(get.body.contains(#""tags":["12345"]"#))
      #expect(get.body.contains(phone.token.uppercased()))

      // The tutorials send `Tags`, in quotes; to broadcast instead would reach the second phone.
      let other = #"{"platform":"apns","pushChannel":"\#(String(repeating: "AB", count: 32))"}"#
      let url2 = "\(up.hub.url)/\(up.hub.name)/installations/phone-2?api-version=2015-01"
      #expect(try await request("PUT", url2, ["Authorization": listen], other).status == 200)
      let send = try await request(
        "POST", "\(up.hub.url)/\(up.hub.name)/messages/?api-version=2015-01",
        [
          "Authorization": full, "ServiceBusNotification-Format": "template",
          "Tags": #""12345""#, "Content-Type": "application/json;charset=utf-8",
        ], #"{"message":"Hello from Postman!"}"#)
      #expect(send.status == 201)
      let location = try #require(send.headers["Location"] as? String)
      let id = try #require(URL(string: location)?.lastPathComponent)
      let (code, output, errors) = try await BelfryProcess.run([
        "notification", "show", id, "--wait", "--connection", up.hub.connectionStrings.full,
        "--hub", up.hub.name,
      ])
      #expect(code == 0, "\(errors)")
      #expect(output.contains("Completed") && output.contains("1 device"))
      let arrived = try await control.call("GET", "/v1/devices/\(phone.id)/notifications")
        .list("notifications")
      #expect(arrived.count == 1)
      #expect(
        arrived.first?.object("payload").object("aps").text("alert") == "Hello from Postman!")
      #expect(try await process.end() == 0)
    }

    @Test("after belfry up, phone and send need not be told where the hub is")
    func foundByItself() async throws {
      let home = try Scratch()
      let environment = ["BELFRY_HOME": home.path]
      let process = try BelfryProcess(["up", "--json", "--port", "0"], environment: environment)
      _ = try await process.line { $0.hasPrefix("{") }
      let phone = try BelfryProcess(["phone", "--count", "1", "--json"], environment: environment)
      _ = try await phone.line { $0.contains("installationId") }
      let (code, output, errors) = try await BelfryProcess.run(
        ["send", "--template", "message=found", "--tags", "12345", "--wait"],
        environment: environment)
      #expect(code == 0 && output.contains("Success"), "\(errors)")
      #expect(try await phone.exitCode() == 0)
      #expect(try await process.end() == 0)
      let gone = try await BelfryProcess.run(
        ["send", "--template", "message=lost", "--broadcast"], environment: environment)
      #expect(gone.code == 64 && gone.errors.contains("which hub?"))
    }

    @Test("belfry demo --exit --json tells scripts what came of it")
    func demoForScripts() async throws {
      let (code, output, errors) = try await BelfryProcess.run(["demo", "--exit", "--json"])
      #expect(code == 0, "\(errors)")
      let ending = JSONObject(
        try JSONSerialization.jsonObject(with: Data(output.utf8)) as? [String: Any])
      #expect(ending.text("shown") == "Hello from Postman!")
      #expect(!ending.text("notificationId").isEmpty)
    }

    @Test(
      "belfry phone registers itself and prints what arrives, as a development build too",
      arguments: [[], ["--sandbox"]])
    func phone(kind: [String]) async throws {
      let (process, up) = try await BelfryProcess.up()
      let access = ["--connection", up.hub.connectionStrings.full, "--hub", up.hub.name]
      let phone = try BelfryProcess(
        ["phone", "--control", up.emulator.control, "--tags", "news", "--count", "1", "--json"]
          + access + kind)
      _ = try await phone.line { $0.contains("installationId") }
      let (code, output, errors) = try await BelfryProcess.run(
        ["send", "--template", "message=It's here", "--tags", "news && !old", "--wait"] + access)
      #expect(code == 0, "\(errors)")
      #expect(output.contains("Success"))
      let shown = try await phone.line { $0.contains("payload") }
      #expect(shown.contains(#""body":"It's here""#))
      #expect(try await phone.exitCode() == 0)
      #expect(try await process.end() == 0)
    }
  }
}
