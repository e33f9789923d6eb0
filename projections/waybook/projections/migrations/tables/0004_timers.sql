-- One row for each timer that a run waits for; it goes when the timer fired or was taken back.
CREATE TABLE timers (
    tenant text NOT NULL,
    agent  text NOT NULL,
    run    text NOT NULL,
    timer  text NOT NULL,
    class  text NOT NULL,
    due    bigint NOT NULL,
    about  text NOT NULL,
    PRIMARY KEY (run, timer, agent, tenant)
);
