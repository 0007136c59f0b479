import Foundation
import HubTesting
import NotificationHubs
import Testing

extension CommandLineSuite {
  @Suite("Registrations from the command line")
  struct RegistrationCommandTests {
    @Test("a registration is put, read, listed and deleted")
    func story() async throws {
      let (process, up) = try await BelfryProcess.up()
      let access = ["--connection", up.hub.connectionStrings.full, "--hub", up.hub.name]
      func run(_ words: String..., code wanted: Int32 = 0) async throws -> String {
        let (code, output, errors) = try await BelfryProcess.run(["registration"] + words + access)
        #expect(code == wanted, "\(words): \(errors)")
        return wanted == 0 ? output : errors
      }
      let made = try await run("put", "--handle", "0a1b", "--tags", "news,city:oslo", "--json")
      let first = try JSONDecoder().decode([String: JSONMember].self, from: Data(made.utf8))
      let id = try #require(first["registrationId"]?.text)
      #expect(first["etag"]?.text == "1")
      #expect(first["pushChannel"]?.text == "0A1B")

      let words = [
        "put", "--id", "mine-1", "--handle", "0A1B", "--body", #"{"aps":{"alert":"$(m)"}}"#,
        "--name", "main", "--priority", "5", "--expiry", "0", "--variable", "m=hello",
        "--header", "apns-topic=com.example",
      ]
      let (code, output, errors) = try await BelfryProcess.run(["registration"] + words + access)
      #expect(code == 0, "\(errors)")
      #expect(output.contains("registration mine-1 is in hub"))
      let shown = try await run("get", "mine-1")
      for part in ["template", "main", "m = hello", "apns-topic: com.example", "X-Apns-Priority"] {
        #expect(shown.contains(part), "\(shown)")
      }

      #expect(try await run("list").contains("2 registrations in hub"))
      #expect(try await run("list", "--limit", "1").contains("raise --limit"))
      let tagged = try await run("list", "--tag", "NEWS")
      #expect(tagged.contains(id) && tagged.contains("1 registration in hub"))
      #expect(try await run("list", "--handle", "0a1b", "--json").contains(#""hasMore":false"#))

      #expect(try await run("delete", "mine-1", "--etag", "9", code: 1).contains("412"))
      #expect(try await run("delete", "mine-1", "--etag", "1").contains("is gone"))
      #expect(try await run("get", "mine-1", code: 1).contains("404"))
      #expect(
        try await run("put", "--id", "none", "--etag", "*", "--handle", "0A", code: 1)
          .contains("404"))
      #expect(try await process.end() == 0)
    }

    @Test(
      "wrong words end with 64 and say what is wrong",
      arguments: [
        (["put"], "give the registration as XML"), (["get"], "ID is missing"),
        (["put", "--handle", "0A", "--name", "n"], "belongs to a template"),
        (["put", "--handle", "0A1"], "hexadecimal"),
        (["put", "--handle", "0A", "--tags", "a b"], "invalid tag"),
        (["put", "--handle", "0A", "--etag", "1"], "--etag needs --id"),
        (["put", "--platform", "browser", "--handle", "x"], "must be {"),
        (["put", "<nothing/>"], "The specified resource description is invalid."),
        (["list", "--tag", "a", "--handle", "b"], "exclude each other"),
        (["list", "--limit", "0"], "from 1 to"),
      ])
    func wrongWords(words: [String], complaint: String) async throws {
      let (code, _, errors) = try await BelfryProcess.run(
        ["registration"] + words,
        environment: [
          "BELFRY_CONNECTION_STRING":
            "Endpoint=sb://127.0.0.1:1/;SharedAccessKeyName=a;SharedAccessKey=b", "BELFRY_HUB": "h",
        ])
      #expect(code == 64, "\(errors)")
      #expect(errors.contains(complaint), "\(errors)")
    }
  }
}

/// A member of a JSON object, if it is a text.
private struct JSONMember: Decodable {
  let text: String?
  init(from decoder: any Decoder) throws {
    text = try? decoder.singleValueContainer().decode(String.self)
  }
}
