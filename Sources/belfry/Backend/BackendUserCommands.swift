import Foundation
import SecurePushBackend

private let fileOptions = [
  BackendOptions.store, BackendOptions.users,
  Option.flag("--json", "print one JSON value for scripts"),
]

/// `belfry backend user add`
struct BackendUserAddCommand: Subcommand {
  static let help = CommandHelp(
    "backend user add", "add a user of the backend, or change a password",
    arguments: [("NAME", "letter case does not count")],
    options: fileOptions + [
      .value("--password-file", "FILE", "read the password from the file's first line; - for stdin")
    ],
    discussion: """
      Asks for the password on a terminal. Only its scrypt hash is kept, in a file that only its
      owner can read; a backend that runs sees the change within a second. Another password ends
      the user's sign-ins: their devices have to sign in again.
      """,
    examples: [
      "belfry backend user add alice",
      "echo \"$PASSWORD\" | belfry backend user add alice --password-file -",
    ])

  let user: UserName
  let words: Words

  init(_ words: Words) throws {
    user = try BackendOptions.user(try words.argument(0), in: words)
    self.words = words
  }

  func run(in context: CommandContext) async throws {
    if words.value("--users") == nil { _ = try BackendOptions.directory(words) }
    let path = BackendOptions.userFile(words)
    let password = try password()
    guard password.utf8.count >= 8 else {
      throw CommandFailure("the password must have at least 8 characters", exitCode: .usage)
    }
    let isNew: Bool
    do { isNew = try UserFile.set(password, of: user, in: path) } catch {
      throw CommandFailure("\(error)", exitCode: .usage)
    }
    if words.flag("--json") { return try context.printJSON(["user": user.text, "file": path]) }
    context.print("\(isNew ? "added" : "changed the password of") \(user) in \(path)")
  }

  private func password() throws -> String {
    if let file = words.value("--password-file") {
      let text = String(decoding: try TextInput.read(file), as: UTF8.self)
      return String(text.prefix { $0 != "\n" && $0 != "\r\n" })
    }
    guard isatty(0) == 1 else {
      throw words.fault("there is no terminal to ask on; give --password-file FILE")
    }
    guard let first = HiddenInput.ask("password for \(user): "),
      let second = HiddenInput.ask("again: ")
    else { throw CommandFailure("no password was given", exitCode: .usage) }
    guard first == second else {
      throw CommandFailure("the two passwords differ", exitCode: .usage)
    }
    return first
  }
}

/// `belfry backend user list`
struct BackendUserListCommand: Subcommand {
  static let help = CommandHelp(
    "backend user list", "list the users of the backend", options: fileOptions,
    examples: ["belfry backend user list"])

  let words: Words
  init(_ words: Words) { self.words = words }

  func run(in context: CommandContext) async throws {
    let path = BackendOptions.userFile(words)
    let users: [UserName]
    do { users = try UserFile(path: path).users } catch {
      throw CommandFailure("\(error)", exitCode: .usage)
    }
    if words.flag("--json") { return try context.printJSON(["users": users.map(\.text)]) }
    for user in users { context.print(user.text) }
    context.print(users.count == 1 ? "1 user" : "\(users.count) users")
  }
}

/// `belfry backend user delete`
struct BackendUserDeleteCommand: Subcommand {
  static let help = CommandHelp(
    "backend user delete", "take a user out of the user file",
    arguments: [("NAME", "the user")], options: fileOptions,
    discussion: """
      The user cannot sign in any more, and the tokens of their devices are worth nothing. What the
      backend keeps of them is erased by DELETE /api/users/NAME, as an operator.
      """,
    examples: ["belfry backend user delete alice"])

  let user: UserName
  let words: Words

  init(_ words: Words) throws {
    user = try BackendOptions.user(try words.argument(0), in: words)
    self.words = words
  }

  func run(in context: CommandContext) async throws {
    let path = BackendOptions.userFile(words)
    let isRemoved: Bool
    do { isRemoved = try UserFile.remove(user, from: path) } catch {
      throw CommandFailure("\(error)", exitCode: .usage)
    }
    guard isRemoved else { throw CommandFailure("there is no user '\(user)' in \(path)") }
    if words.flag("--json") { return try context.printJSON(["deleted": user.text]) }
    context.print("deleted \(user)")
  }
}

/// `belfry backend user revoke`
struct BackendUserRevokeCommand: Subcommand {
  static let help = CommandHelp(
    "backend user revoke", "end every sign-in of a user: a device was lost",
    arguments: [("NAME", "the user: alice, or subject:… for one whom a token names")],
    options: [
      BackendOptions.store, BackendOptions.database,
      .flag("--json", "print one JSON value for scripts"),
    ],
    discussion: """
      The tokens that POST /api/token gave to the user's devices are refused from now on, also by a
      backend that runs. The password stays: change it too if it may be known, with
      `belfry backend user add NAME`. Tokens of an OpenID provider are the provider's to revoke.
      Hub tokens (POST /api/token/hub) end by themselves, an hour after they were given.
      """,
    examples: ["belfry backend user revoke alice"])

  let words: Words
  let user: UserName

  init(_ words: Words) throws {
    self.words = words
    let name = try words.argument(0)
    user = try UserName(key: name) ?? BackendOptions.user(name, in: words)
  }

  func run(in context: CommandContext) async throws {
    let store = try BackendRuntime.openExisting(
      BackendOptions.existing(words), database: BackendOptions.database(words, context))
    let count = try await store.revoke(
      user,
      audit: AuditLine(
        at: Date(), actor: "command line", action: "revoke", subject: user.key, outcome: "done",
        address: ""))
    await store.close()
    if words.flag("--json") {
      struct Revoked: Encodable {
        let user: String
        let signIns: Int
      }
      return try context.printJSON(Revoked(user: user.key, signIns: count))
    }
    context.print(
      count == 1 ? "ended 1 sign-in of \(user)" : "ended \(count) sign-ins of \(user)")
  }
}

/// `belfry backend audit`
struct BackendAuditCommand: Subcommand {
  static let help = CommandHelp(
    "backend audit", "show who asked the backend for what",
    options: [
      BackendOptions.store, BackendOptions.database,
      .value("--user", "NAME", "only lines by this user: alice, or subject:… for a token's"),
      .value("--limit", "N", "so many lines, the newest first (default 100)"),
      .flag("--json", "print one JSON value for scripts"),
    ],
    examples: ["belfry backend audit --user alice"])

  let words: Words
  let user: UserName?
  let limit: Int

  init(_ words: Words) throws {
    self.words = words
    user = try words.value("--user").map { name in
      try UserName(key: name) ?? BackendOptions.user(name, in: words)
    }
    limit = try words.integer("--limit", in: 1...100_000) ?? 100
  }

  func run(in context: CommandContext) async throws {
    let store = try BackendRuntime.openExisting(
      BackendOptions.existing(words), database: BackendOptions.database(words, context))
    let lines = try await store.audit(of: user, limit: limit)
    await store.close()
    guard words.flag("--json") else {
      for line in lines {
        context.print(
          "\(line.at.formatted(.iso8601))  \(line.actor.padded(to: 16)) "
            + "\(line.action.padded(to: 10)) \(line.outcome.padded(to: 11)) "
            + "\(line.subject.padded(to: 24)) \(line.address)")
      }
      return
    }
    struct Line: Encodable {
      let at, actor, action, outcome, subject, address: String
    }
    try context.printJSON([
      "lines": lines.map {
        Line(
          at: $0.at.formatted(.iso8601), actor: $0.actor, action: $0.action, outcome: $0.outcome,
          subject: $0.subject, address: $0.address)
      }
    ])
  }
}

/// Reads a line from the terminal without showing it.
enum HiddenInput {
  static func ask(_ prompt: String) -> String? {
    FileHandle.standardError.write(Data(prompt.utf8))
    var settings = termios()
    guard tcgetattr(0, &settings) == 0 else { return nil }
    let before = settings
    settings.c_lflag &= ~tcflag_t(ECHO)
    tcsetattr(0, TCSAFLUSH, &settings)
    defer {
      var before = before
      tcsetattr(0, TCSAFLUSH, &before)
      FileHandle.standardError.write(Data("\n".utf8))
    }
    return readLine(strippingNewline: true)
  }
}
