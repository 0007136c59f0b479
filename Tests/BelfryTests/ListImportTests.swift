import Foundation
import HubTesting
import NotificationHubs
import Testing

@testable import belfry

@Suite("Comma-separated values are read as RFC 4180 has them")
struct CSVReaderTests {
  private func records(_ bytes: [UInt8], limit: Int = 1000) throws -> [CSVReader.Record] {
    let scratch = try Scratch()
    let path = scratch.path + "/list.csv"
    try Data(bytes).write(to: URL(fileURLWithPath: path))
    var reader = CSVReader(try #require(FileHandle(forReadingAtPath: path)), limit: limit)
    _ = try reader.begin("list.csv")
    var found: [CSVReader.Record] = []
    while let record = try reader.next() { found.append(record) }
    return found
  }

  private func fields(_ record: CSVReader.Record) -> [String]? {
    if case .fields(let fields) = record.content { fields } else { nil }
  }

  private func fault(_ record: CSVReader.Record) -> String? {
    if case .fault(let fault) = record.content { fault } else { nil }
  }

  @Test(
    "fields may be quoted, with commas, marks and line ends in them",
    arguments: ["\n", "\r\n", "\r"])
  func quoted(end: String) throws {
    let lines = ["\u{FEFF}a,b", "\"x,\"\"y\"\"\(end)z\",", "é,\"\"", "last,one"]
    let found = try records(Array(lines.joined(separator: end).utf8))
    #expect(
      found.map(fields) == [["a", "b"], ["x,\"y\"\(end)z", ""], ["é", ""], ["last", "one"]])
    #expect(found.map(\.line) == [1, 2, 4, 5])
    #expect(found[3].text == Array("last,one".utf8))
  }

  @Test("a wrong mark, a long record or bytes that are no text cost only their own line")
  func faults() throws {
    let long = String(repeating: "x", count: 5000)
    let text = "a,b\n\"open,1\n\"x\"y,2\n\(long)\nc,d\n"
    let found = try records(Array(text.utf8) + [0xC3, 0x28, 10] + Array("e,f".utf8))
    #expect(found.map(\.line) == [1, 2, 3, 4, 5, 6, 7])
    #expect(fault(found[1])?.contains("closing quotation mark") == true)
    #expect(fault(found[2])?.contains("closing quotation mark") == true)
    #expect(fault(found[3]) == "it is longer than 1000 bytes")
    #expect(found[3].text.count == 1000)
    #expect(fields(found[4]) == ["c", "d"])
    #expect(fault(found[5]) == "it is not text in UTF-8")
    #expect(fields(found[6]) == ["e", "f"])
    #expect(fault(try records(Array("a\n\"b".utf8))[1]) == "a quotation mark does not end")
    let endless = try records(Array("\"\(long)\nb\n".utf8))
    #expect(fault(endless[0]) == "a quotation mark does not end within 1000 bytes")
    #expect(fields(endless[1]) == ["b"])
  }
}

extension CommandLineSuite {
  @Suite("Lists of devices from elsewhere are imported")
  struct ListImportTests {
    private static let columns =
      "id,identifier,session_count,language,device_type,tags,invalid_identifier,"
      + "external_user_id,notification_types,web_auth,web_p256"
    private static let p256dh =
      "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"
    private static let apns = String(repeating: "ab", count: 32)

    private func hub() async throws -> Scratch {
      let scratch = try Scratch()
      let made = try await BelfryProcess.run(["hub", "create", "shop", "--data", scratch.path])
      #expect(made.0 == 0, "\(made.2)")
      return scratch
    }

    private func run(_ words: String..., data: Scratch) async throws -> (Int32, String, String) {
      try await BelfryProcess.run(words + ["--data", data.path])
    }

    private func devices(_ data: Scratch) async throws -> [Installation] {
      let found = try await run("installation", "list", "--limit", "5000", "--json", data: data)
      return try InstallationList.decode(Array(found.1.utf8))
    }

    @Test("subscriptions of OneSignal come with users and tags, and those that opted out do not")
    func oneSignal() async throws {
      let data = try await hub()
      let rows = [
        Self.columns,
        #"s1,\#(Self.apns),3,en,0,"{""plan"":""pro"",""first name"":""Zoë B"",""old"":""""}",f,ann,1,,"#,
        #"s2,fcm-token-of-bob,1,de,1,{},f,bob,,,"#,
        #"s3,fcm-token-of-carl,1,de,1,,t,carl,-2,,"#,
        #"s4,fcm-token-of-dora,1,de,1,,f,dora,-31,,"#,
        #"s5,fcm-token-of-eva,1,de,1,,t,eva,,,"#,
        #"s6,ann@example.com,1,en,11,,f,ann,1,,"#,
        #"s7,,1,en,1,,f,fay,1,,"#,
        #"s8,https://updates.push.services.mozilla.com/wpush/v2/x,1,en,8,,f,gil,1,BTBZMqHH6r4Tts7J_aSIgg,\#(Self.p256dh)"#,
        #"s9,fcm-token-of-bob,1,de,1,{},f,bob,,,"#,
        #"s10,no hex,1,en,0,,f,hal,1,,"#,
        #"s11,fcm-token-of-ida,1,en,99,,f,ida,1,,"#,
        #"s12,fcm-token-of-jim,1,en,1,{broken,f,jim,1,,"#,
      ]
      let file = try data.file("users.csv", rows.joined(separator: "\r\n"))
      let words = ["import", file, "--format", "onesignal", "--tag-column", "language"]
      let dry = try await BelfryProcess.run(words + ["--dry-run", "--data", data.path])
      #expect(dry.0 == 1)
      #expect(dry.1.contains("would import 3 lines, 3 failed"), "\(dry.1)")
      #expect(dry.2.contains("line 11: ") && dry.2.contains("device_type '99'"), "\(dry.2)")
      #expect(try await devices(data).isEmpty)
      let failed = data.path + "/failed.csv"
      let done = try await BelfryProcess.run(
        words + ["--failed", failed, "--data", data.path])
      #expect(done.0 == 1)
      for line in [
        "imported 3 lines, 3 failed", "  1 apns", "  1 browser", "  1 fcmv1",
        "1 left out: opted out (notification_types -2)",
        "1 left out: disabled (notification_types -31)",
        "1 left out: unsubscribed (invalid_identifier)",
        "1 left out: no platform of the hub: email", "1 left out: no push token",
        "1 left out: the same device as an earlier line", "1 tags with - for",
      ] { #expect(done.1.contains(line), "\(line) in \(done.1)") }
      #expect(done.2.contains("line 13: tags is not a JSON object"), "\(done.2)")
      #expect(
        try String(contentsOfFile: failed, encoding: .utf8)
          == [rows[0], rows[10], rows[11], rows[12], ""].joined(separator: "\n"))
      let found = try await devices(data)
      #expect(Set(found.compactMap(\.userID)) == ["ann", "bob", "gil"])
      let ann = try #require(found.first { $0.userID == "ann" })
      #expect(ann.platform == .apns && ann.pushChannel == .handle(Self.apns.uppercased()))
      #expect(ann.tags == ["plan:pro", "first-name:Zoë-B", "language:en"])
      #expect(
        found.first { $0.userID == "gil" }?.pushChannel
          == .subscription(
            endpoint: "https://updates.push.services.mozilla.com/wpush/v2/x",
            p256dh: Self.p256dh, auth: "BTBZMqHH6r4Tts7J_aSIgg"))
      let again = try await BelfryProcess.run(words + ["--json", "--data", data.path])
      #expect(again.1.contains(#""imported":0"#) && again.1.contains(#""unchanged":3"#))
      #expect(again.1.contains(#"{"line":13,"reason":"tags is not a JSON object"}"#), "\(again.1)")
      #expect(try await devices(data).count == 3)
      let some = try await BelfryProcess.run([
        "import", file, "--format", "onesignal", "--data-tags", "none", "--no-users", "--data",
        data.path,
      ])
      #expect(some.1.contains("imported 3 lines, 3 failed"), "\(some)")
      #expect(try await devices(data).allSatisfy { $0.userID == nil && $0.tags.isEmpty })
    }

    @Test("an import that was cut off and run again makes each device once")
    func resumed() async throws {
      let data = try await hub()
      let tokens = (0..<1000).map { "fcm-token-number-\(10_000 + $0)" }
      let part = try data.file("part.txt", tokens.prefix(400).joined(separator: "\n"))
      let whole = try data.file("whole.txt", tokens.joined(separator: "\r\n") + "\r\n\r\n")
      for (file, line) in [(part, "imported 400 lines, 0"), (whole, "imported 600 lines, 0")] {
        let done = try await run(
          "import", file, "--format", "tokens", "--platform", "fcm", "--tag", "moved", data: data)
        #expect(done.0 == 0 && done.1.contains(line), "\(done)")
      }
      let found = try await devices(data)
      #expect(Set(found.map(\.pushChannel)) == Set(tokens.map { .handle($0) }))
      #expect(found.count == 1000 && found.allSatisfy { $0.tags == ["moved"] })
      let rest = try await run(
        "import", whole, "--format", "tokens", "--platform", "fcm", "--from-line", "991",
        data: data)
      #expect(rest.1.contains("imported 10 lines, 0 failed"), "\(rest)")
    }

    @Test("the file to import is not overwritten with its failed lines, and a directory is none")
    func overwriting() async throws {
      let data = try await hub()
      let list = try data.file("list.txt", String(repeating: "0A", count: 32) + "\n")
      let link = data.path + "/link.txt"
      try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: list)
      for name in [list, link] {
        let (code, _, errors) = try await run(
          "import", list, "--format", "tokens", "--platform", "apns", "--failed", name, "--dry-run",
          data: data)
        #expect(code == 64 && errors.contains("is the file to import"), "\(errors)")
      }
      #expect(try String(contentsOfFile: list, encoding: .utf8).count == 65)
      let (code, _, errors) = try await run(
        "import", data.path, "--format", "tokens", "--platform", "apns", data: data)
      #expect(code == 64 && errors.contains("is a directory"), "\(errors)")
    }

    @Test("a file without devices is refused, and a mark at its beginning is no fault")
    func noDevices() async throws {
      let data = try await hub()
      let failed = try data.file("failed", "of the last run")
      let header = "identifier,device_type,invalid_identifier\n"
      for (format, text) in [
        ("tokens", ""), ("onesignal", ""), ("devices", "\n \n"),
        ("tokens", "\u{FEFF}\n"), ("tokens", "token,platform\n"), ("onesignal", header),
      ] {
        let none = try await run(
          "import", try data.file("none", text), "--format", format, "--failed", failed, data: data)
        #expect(
          none.0 == 64 && none.1.isEmpty && none.2.contains("none has no devices"), "\(none)")
        #expect(try String(contentsOfFile: failed, encoding: .utf8) == "of the last run")
      }
      let exported = try await run("import", try data.file("exported", ""), data: data)
      #expect(exported.0 == 0 && exported.1.contains("imported 0 lines, 0 failed"), "\(exported)")
      let marked = try data.file(
        "marked",
        "\u{FEFF}{\"installationId\":\"a\",\"platform\":\"apns\",\"pushChannel\":\"0A\"}\n")
      let one = try await run("import", marked, data: data)
      #expect(one.0 == 0 && one.1.contains("imported 1 lines, 0 failed"), "\(one)")
      let rest = try await run("import", marked, "--from-line", "2", data: data)
      #expect(rest.0 == 64 && rest.2.contains("has no devices from line 2 on"), "\(rest)")
    }

    @Test("damaged lines at the beginning of a file of devices cost only themselves")
    func damagedBeginning() async throws {
      let data = try await hub()
      let device = #"{"installationId":"a","platform":"apns","pushChannel":"0A"}"#
      for beginning in ["x\ny\n", "\nx\n\n\"platform\":\"apns\",\"tags\":[]}\n"] {
        let text = beginning + device + "\n"
        let list = try data.file("list", text)
        let whole = try await run("import", list, data: data)
        #expect(whole.0 == 1 && whole.1.contains("imported 1 lines, 2 failed"), "\(whole)")
        let line = text.split(separator: "\n", omittingEmptySubsequences: false).count - 1
        let rest = try await run("import", list, "--from-line", "\(line)", data: data)
        #expect(rest.0 == 0 && rest.1.contains("imported 1 lines, 0 failed"), "\(rest)")
      }
    }

    @Test("a tag of any length and characters takes no time", .timeLimit(.minutes(1)))
    func longTag() async throws {
      let data = try await hub()
      let tag = String(repeating: "é", count: 300_000)
      let list = try data.file(
        "list.csv", "token,tag\n" + String(repeating: "0A", count: 32) + ",\(tag)\n")
      let (code, output, errors) = try await run(
        "import", list, "--format", "tokens", "--platform", "apns", "--tag-column", "tag",
        data: data)
      #expect(code == 0, "\(output) \(errors)")
      #expect(try await devices(data).first?.tags.first?.rawValue.count == 120)
    }

    @Test("a table of tokens has its columns where the options say")
    func table() async throws {
      let data = try await hub()
      let table = try data.file(
        "table.csv",
        """
        Device,Service,Account,Tags,City,Key
        \(Self.apns),ios,ann,news red,Oslo,p1
        fcm-token-of-bob,2,bob,,,p2
        fcm-token-of-carl,palm,carl,,,p3
        fcm token,android,,,,p4
        \(Self.apns),android,,,,p5
        one,two
        """)
      let done = try await run(
        "import", table, "--format", "tokens", "--token-column", "device", "--platform-column",
        "service", "--user-column", "Account", "--tag-column", "City", "--id-column", "key",
        data: data)
      #expect(done.1.contains("imported 2 lines, 4 failed"), "\(done)")
      for line in [
        "line 4: 'palm' is not a platform", "line 5: a token has no blanks",
        "line 6: 64 hexadecimal digits are a token of APNs, not of FCM",
        "line 7: it has 2 fields, and the first line has 6",
      ] { #expect(done.2.contains(line), "\(line) in \(done.2)") }
      let found = try await devices(data).sorted { $0.installationID < $1.installationID }
      #expect(found.map(\.installationID) == ["p1", "p2"])
      #expect(found.first?.tags == ["news", "red", "City:Oslo"])
      #expect(found.map(\.userID) == ["ann", "bob"])
    }

    @Test(
      "a file of another form is refused before anything is changed, and the answer names the way",
      arguments: [
        ("onesignal", [], "a,b\n1,2\n", "no column identifier, device_type, invalid_identifier"),
        ("onesignal", [], "a,b\n1,2\n", "--format tokens --token-column NAME --platform P"),
        ("onesignal", [], "token,platform\nx,ios\n", "it looks like a list of tokens"),
        ("onesignal", [], "identifier;device_type\n", "columns are separated by commas"),
        ("onesignal", [], "{\"installationId\":\"a\"}\n", "leave out --format"),
        ("onesignal", [], "identifier,device_type,invalid_identifier,Identifier\n", "twice"),
        ("tokens", [], "identifier,device_type\n", "it looks like OneSignal's export"),
        ("tokens", [], "push_token,os\nx,ios\n", "its columns are push_token, os; --token-column"),
        ("tokens", [], "token\nx\n", "no column platform; say --platform for all devices"),
        ("tokens", [], "fcm-token-of-somebody\n", "--platform is missing"),
        ("tokens", ["--platform", "fcm"], "push_token\nx\n", "say --token-column push_token"),
        ("tokens", ["--platform", "fcm", "--tag", "a b"], "x\n", "--tag: An invalid tag"),
        ("tokens", ["--new-ids"], "x\n", "--new-ids does not go with --format tokens"),
        ("tokens", ["--tag-column", "city"], "token,platform\n", "no column city"),
        ("devices", ["--tag", "a"], "x\n", "--tag does not go with --format devices"),
        ("devices", [], "id,identifier,device_type\n", "import it with --format onesignal"),
        ("devices", [], "token,platform\n", "import it with --format tokens"),
        ("devices", [], "Email,Name\nann,Ann\n", "it begins with 'Email,Name'. For OneSignal's"),
        ("devices", [], "\nEmail,Name\nann,Ann\n", "it begins with 'Email,Name'"),
        ("devices", ["--from-line", "2"], "x\nEmail\tName\nann\tAnn\n", "it begins with 'Email"),
        ("devices", [], "Email,Name\n", "--format tokens --token-column NAME --platform P"),
        ("devices", [], "fcm-token-of-somebody\nfcm-token-of-another\n", "; for a list of tokens"),
        ("devices", [], "fcm-token-of-somebody", "; for a list of tokens, say --format tokens"),
        ("devices", [], "a\u{1}b\nx\n", "is not what `belfry export` writes"),
        (
          "devices", [], "[{\"installationId\":\"a\"}]",
          "; for a list of tokens, say --format tokens"
        ),
      ])
    func refused(format: String, options: [String], text: String, says: String) async throws {
      let data = try await hub()
      let file = try data.file("list.csv", text)
      let (code, output, errors) = try await BelfryProcess.run(
        ["import", file, "--format", format, "--data", data.path] + options)
      #expect(code == 64 && output.isEmpty, "\(code) \(output)")
      #expect(errors.contains(says), "\(errors)")
    }

    @Test(
      "a file that is no text in UTF-8, or not there, is refused",
      arguments: [
        ([0x1F, 0x8B, 8, 0], "decompress it first, with gunzip"),
        ([0xFF, 0xFE, 0x69, 0], "iconv -f UTF-16 -t UTF-8"),
        ([0x69, 0, 0x64, 0], "iconv -f UTF-16 -t UTF-8"),
        (Array("PK".utf8) + [3, 4], "export it as CSV in UTF-8"),
        ([0, 0, 0, 0], "is not text: give a file with a device on"),
        ([0x7F, 0x45, 0x4C, 0x46, 2, 1, 1, 0], "is not text: give a file with a device on"),
        (nil, "cannot be read: No such file"),
      ] as [([UInt8]?, String)])
    func noText(bytes: [UInt8]?, says: String) async throws {
      let data = try await hub()
      let file = data.path + "/list.csv"
      if let bytes { try Data(bytes).write(to: URL(fileURLWithPath: file)) }
      for format in ["onesignal", "tokens", "devices"] {
        let done = try await run("import", file, "--format", format, data: data)
        #expect(done.0 == 64 && done.2.contains(says), "\(format): \(done)")
      }
    }
  }
}
