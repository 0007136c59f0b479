import SQLDatabase

/// The reads of a subject: a type for each, on the session of a reading thread.
protocol ReadingSubject {
  var session: ReadSession { get }
}

extension ReadingSubject {
  var connection: any SQLConnection { session.connection }
  var templates: TemplateTable { session.templates }
}
